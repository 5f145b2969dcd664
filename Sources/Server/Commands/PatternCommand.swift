internal import ArgumentParser
internal import Base
internal import FMP4
internal import Glibc
internal import Local
internal import Settings

/// `weir pattern`: writes the uncoded frames of the test pattern.
struct PatternCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pattern", abstract: "Write the test pattern's raw frames as YUV4MPEG2 to standard output.",
    discussion: """
      What a player shows of the test pattern can be compared with them, frame by frame: the number is burned in, and \
      EXT-X-PROGRAM-DATE-TIME less the number's time is when frame 0 was.

      Examples:
        weir pattern --count 300 > pattern.y4m
        weir pattern --start 2026-11-21T07:24:10.500Z --first 120 --count 60 | ffmpeg -i copy.mp4 -i - -lavfi psnr -f null -
      """)

  @Option(help: ArgumentHelp("Time of frame 0, in UTC.", valueName: "time")) var start = "2026-01-01T00:00:00Z"
  @Option(help: ArgumentHelp("Number of the first frame.", valueName: "number")) var first: Int64 = 0
  @Option(help: ArgumentHelp("Number of frames.", valueName: "number")) var count: Int64 = 150

  /// Years of frames; far below the limits of the arithmetic.
  private static let largestNumber: Int64 = 1 << 32

  /// Start times, in nanoseconds since 1970, to which that many frames can be added without overflow.
  private static let times = -(Int64.max / 4)...Int64.max / 4

  func validate() throws {
    for (option, value) in [("--first", first), ("--count", count)] where !(0...Self.largestNumber).contains(value) {
      throw ValidationError("\(option) \(value): give a number from 0 to \(Self.largestNumber)")
    }
    guard let wallStart = UTCText.read(start), Self.times.contains(wallStart.nanoseconds) else {
      throw ValidationError("--start '\(start)' is not a time; write it as 2026-11-21T07:24:10.500Z")
    }
    guard isatty(STDOUT_FILENO) == 0 else {
      throw ValidationError("the output is not text; redirect it to a file or a program: weir pattern > pattern.y4m")
    }
  }

  func run() throws {
    guard let wallStart = UTCText.read(start) else { return }
    // A reader may close the pipe early; that is an error of the write and must not kill the process.
    signal(SIGPIPE, SIG_IGN)
    var output = BufferedOutput(descriptor: STDOUT_FILENO)
    do {
      try TestPatternFile(wallStart: wallStart).write(first..<first + count) { try output.write($0) }
      try output.flush()
    } catch let failure as BufferedOutput.Failure {
      if failure.code == EPIPE { return }
      throw ConfigurationError(.configuration, "the frames could not be written: \(failure)")
    }
  }
}

/// Collects small writes to a descriptor into large ones.
struct BufferedOutput {
  private let descriptor: Int32
  private var waiting: [UInt8] = []
  private static let size = 1 << 20

  /// The error of write(2).
  struct Failure: Error, CustomStringConvertible {
    let code: Int32
    var description: String { String(cString: strerror(code)) }
  }

  init(descriptor: Int32) {
    self.descriptor = descriptor
    waiting.reserveCapacity(Self.size)
  }

  mutating func write(_ bytes: UnsafeRawBufferPointer) throws(Failure) {
    if waiting.count + bytes.count > Self.size { try flush() }
    waiting.append(contentsOf: bytes)
  }

  mutating func flush() throws(Failure) {
    var done = 0
    while done < waiting.count {
      let count = waiting.withUnsafeBytes {
        Glibc.write(descriptor, $0.baseAddress?.advanced(by: done), $0.count - done)
      }
      guard count > 0 else {
        if errno == EINTR { continue }
        throw Failure(code: errno)
      }
      done += count
    }
    waiting.removeAll(keepingCapacity: true)
  }
}

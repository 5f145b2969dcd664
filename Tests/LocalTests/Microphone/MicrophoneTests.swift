import Base
import CLibAV
import FMP4
import Glibc
import IngestSupport
import LibAV
@testable import Local
import NIOCore
import Support
import Synchronization
import Testing

/// ALSA's `file` plugin reads a microphone's samples from a pipe: exactly those that are put in. It takes for granted that
/// the pipe holds as many as are asked for, which is a tenth of a second.
@Suite(.serialized) struct MicrophoneTests {
  private static let rate = 48000
  private static let block = 4800
  private static let blockNanoseconds: Int64 = 100_000_000

  @Test func aNodeTellsTheCardAndTheDevice() throws {
    let place = try #require(MicrophoneCatalogue.place("pcmC12D3c"))
    #expect(place == (12, 3))
    for other in ["pcmC0D0p", "controlC0", "pcmC0c", "pcmCxD0c", "pcmC0D0D0c", "c", ""] {
      #expect(MicrophoneCatalogue.place(other) == nil, "\(other)")
    }
  }

  /// A pipe with a microphone behind it.
  private final class Pipe: Sendable {
    let descriptor: Int32
    private let folder: String
    /// F_SETPIPE_SZ of fcntl(2), which Glibc shows with _GNU_SOURCE alone.
    private static let setPipeSize: Int32 = 1031

    init() throws {
      var template = Array("/tmp/weir-microphone-XXXXXX".utf8CString)
      folder = try #require(mkdtemp(&template).map { String(cString: $0) })
      try #require(mkfifo("\(folder)/samples", 0o600) == 0)
      let configuration = """
        pcm.fakemic {
          type file
          slave.pcm { type null }
          file "/dev/null"
          infile "\(folder)/samples"
          format "raw"
        }
        """
      let file = open("\(folder)/alsa.conf", O_WRONLY | O_CREAT, 0o600)
      try #require(write(file, configuration, configuration.utf8.count) == configuration.utf8.count)
      close(file)
      setenv("ALSA_CONFIG_PATH", "\(folder)/alsa.conf", 1)
      // Open at both ends, so that neither open call waits for the other.
      descriptor = open("\(folder)/samples", O_RDWR)
      try #require(descriptor >= 0)
      // Room for a second and a half: a block that had to be written in two goes would be read as one with a hole.
      try #require(fcntl(descriptor, Self.setPipeSize, 1 << 20) >= 1 << 20)
    }

    deinit {
      close(descriptor)
      for name in ["samples", "alsa.conf"] { unlink("\(folder)/\(name)") }
      rmdir(folder)
    }

    func put(_ samples: ArraySlice<Float>) {
      samples.withUnsafeBytes { _ = write(descriptor, $0.baseAddress, $0.count) }
    }
  }

  /// Noise of little treble, both channels alike: each stretch of it is like no other.
  private static func noise(_ count: Int) -> [Float] {
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    var (first, second): (Float, Float) = (0, 0)
    return (0..<count).flatMap { _ -> [Float] in
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      first += 0.05 * (Float(Int64(bitPattern: state) >> 40) / 8_388_608 - first)
      second += 0.05 * (first - second)
      return [second, second]
    }
  }

  /// What was heard, as it came and brought onto the clock.
  private struct Heard {
    var exact: [Float] = []
    var aligned: [Float] = []
    var frames: [(time: Int64, payload: ByteBuffer)] = []
    var bridged: Int64 = 0
    var codec: Codec?
  }

  /// Plays samples into the microphone, with a pause (nanoseconds) before some blocks, and gives out what was heard. The
  /// clock is told to the microphone and goes on by what has been played, so that a busy machine makes no pauses of its own.
  private func play(_ samples: [Float], pauses: [Int: Int64] = [:]) async throws -> Heard {
    let result = Mutex(Heard())
    let outcome = FirstError()
    // On a thread of its own: reading from a pipe may block.
    try await DedicatedThread.run(named: "listen") {
      outcome.keep {
        let heard = try Self.listen(samples, pauses)
        result.withLock { $0 = heard }
      }
    }
    try outcome.get()
    return result.withLock { $0 }
  }

  private static func listen(_ samples: [Float], _ pauses: [Int: Int64]) throws -> Heard {
    let pipe = try Pipe()
    let microphone = try Microphone(MicrophoneSettings(device: "fakemic", rate: rate, channels: 2))
    #expect(microphone.rate == rate && microphone.channels == 2 && microphone.format == AV_SAMPLE_FMT_FLT)
    let aligner = AudioAligner()
    try aligner.connect(rate: microphone.rate, channels: 2, format: microphone.format)
    let encoder = try AudioEncoder(.aac, sampleRate: rate, bitRate: 128_000)
    let framer = AudioFramer(encoder)
    var heard = Heard()
    heard.codec = encoder.codec
    // Far from the device's own stamps, so that these are not believed.
    var clock = MonotonicTime.at(1 << 60)
    for (number, start) in stride(from: 0, to: samples.count, by: 2 * block).enumerated() {
      // A block is there when it has been heard.
      clock += blockNanoseconds + (pauses[number] ?? 0)
      pipe.put(samples[start..<min(samples.count, start + 2 * block)])
      let came = try microphone.next(milliseconds: 1000, now: { clock }) { block in
        heard.exact += block.bytes.bindMemory(to: Float.self)
        try aligner.add(block.bytes, count: block.count, time: block.time) { left, right in
          heard.aligned += left
          framer.collect(left, right)
        }
        try framer.encode { heard.frames.append(($0, $2)) }
      }
      try #require(came)
    }
    try framer.finish { heard.frames.append(($0, $2)) }
    heard.bridged = aligner.bridged
    return heard
  }

  /// By how many samples the second is behind the first where they are most alike, and how alike: 1 is the same.
  private func likeness(_ a: ArraySlice<Float>, _ b: [Float], within reach: Int) -> (lag: Int, value: Float) {
    var best: (lag: Int, value: Float) = (0, -1)
    let power = a.reduce(0) { $0 + $1 * $1 }
    for lag in -reach...reach {
      let start = a.startIndex + lag
      guard start >= 0, start + a.count <= b.count else { continue }
      var (product, other): (Float, Float) = (0, 0)
      for index in 0..<a.count {
        product += a[a.startIndex + index] * b[start + index]
        other += b[start + index] * b[start + index]
      }
      let value = product / max((power * other).squareRoot(), .leastNormalMagnitude)
      if value > best.value { best = (lag, value) }
    }
    return best
  }

  private func decode(_ heard: Heard) throws -> [Float] {
    guard let codec = heard.codec, codec.id == .aac else { return [] }
    let decoder = try LibAVDecoder(AV_CODEC_ID_AAC, extradata: codec.record())
    var decoded: [Float] = []
    let receive = { (time: Int64, frame: AVFrame) in
      guard let left = frame.extended_data?.pointee else { return }
      left.withMemoryRebound(to: Float.self, capacity: Int(frame.nb_samples)) {
        decoded += UnsafeBufferPointer(start: $0, count: Int(frame.nb_samples))
      }
    }
    for frame in heard.frames { try decoder.decode(frame, receive) }
    try decoder.decode(nil, receive)
    return decoded
  }

  @Test func samplesComeThroughExactlyAndTheAudioIsTheirs() async throws {
    let samples = Self.noise(2 * Self.rate)
    let heard = try await play(samples)
    #expect(heard.exact == samples, "bit by bit")
    #expect(heard.bridged == 0)
    #expect(abs(heard.aligned.count - samples.count / 2) < 200, "\(heard.aligned.count) samples")
    let left = stride(from: 0, to: samples.count, by: 2).map { samples[$0] }
    let decoded = try decode(heard)
    for start in stride(from: 12_000, to: 84_000, by: 24_000) {
      let aligned = likeness(left[start..<start + 2048], heard.aligned, within: 300)
      #expect(aligned.value > 0.97 && abs(aligned.lag) < 200, "\(aligned) at \(start)")
      let coded = likeness(left[start..<start + 2048], decoded, within: 300)
      #expect(coded.value > 0.93 && abs(coded.lag) < 200, "\(coded) at \(start), decoded")
    }
  }

  @Test func aPauseIsBridgedWithSilenceOfItsLength() async throws {
    let samples = Self.noise(Self.rate)
    let heard = try await play(samples, pauses: [5: 400_000_000])
    #expect(heard.exact == samples)
    #expect(abs(Int(heard.bridged) - 19_200) < 200, "\(heard.bridged) samples of silence")
    let left = stride(from: 0, to: samples.count, by: 2).map { samples[$0] }
    let before = likeness(left[8000..<10_048], heard.aligned, within: 200)
    #expect(before.value > 0.97, "\(before)")
    let after = likeness(left[36_000..<38_048], heard.aligned, within: 22_000)
    #expect(after.value > 0.97 && abs(after.lag - 19_200) < 400, "\(after)")
  }
}

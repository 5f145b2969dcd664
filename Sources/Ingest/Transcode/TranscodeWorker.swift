internal import Base
internal import CLibAV
internal import CProcess
internal import FMP4
internal import Glibc
internal import LibAV
internal import NIOCore

/// The worker's side: reads requests from a socket and writes the output to it, until the server closes it. One thread
/// reads and decodes. Each rung has one thread that scales and encodes. Audio and JPEGs are encoded on the reading
/// thread. It has nothing but its input.
package final class TranscodeWorker {
  private let descriptor: Int32
  private let output: ReplyWriter
  private var decoder: SourceDecoder?
  private var audio: AudioTranscoder?
  /// In order of the rungs' numbers.
  private var rungs: [RungThreads] = []
  /// By bit rate: bits that ended encoders had output ahead of their rate.
  private var debts: [UInt32: VBVCarryOver] = [:]
  private var spacing = FrameDropper()
  private var captions = CaptionCarryOver()
  private var consumed: UInt32 = 0
  private var dropped: UInt32 = 0

  private struct RungThreads {
    let rung: TranscodeConfiguration.Rung
    let encoder: RungEncoder
    let worker: RungWorker
    /// Whether the rung before it supplies its frames.
    var isFed: Bool
  }

  /// - Parameter descriptor: a connected stream socket. The caller closes it.
  package init(descriptor: Int32) {
    self.descriptor = descriptor
    output = ReplyWriter(descriptor: descriptor)
  }

  /// Runs the worker as a process. Its socket is its standard input.
  package static func runAsProcess() {
    // Frames take megabytes and come and go: memory given back to the system would have to be cleared each time.
    weir_keep_freed_memory()
    // Once confined, it opens no files.
    weir_load_libav()
    // Publishers and viewers have priority.
    WorkerConfinement.apply(
      .computing, addressSpace: TranscodeLimits.addressSpace, openFiles: TranscodeLimits.openFiles, niceness: 5)
    TranscodeWorker(descriptor: STDIN_FILENO).run()
  }

  /// Returns when the server has closed the socket or has broken the protocol.
  package func run() {
    defer { closeRungs() }
    var reader = TranscodeFrameReader()
    let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 17, alignment: 16)
    defer { chunk.deallocate() }
    while true {
      let count = recv(descriptor, chunk.baseAddress, chunk.count, 0)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return }
      reader.append(UnsafeRawBufferPointer(rebasing: chunk[..<count]))
      do {
        while let (type, body) = try reader.next() {
          try handle(try TranscodeWire.request(type, body))
          report()
        }
      } catch {
        output.write(.failed("\(error)"))
        return
      }
    }
  }

  private func handle(_ request: TranscodeRequest) throws {
    switch request {
    case .configure(let configuration): try configure(configuration)
    case .configureAudio(let configuration): try configure(configuration)
    case .frame(let frame):
      consumed += 1
      spacing.lateness = Int64(frame.lateness)
      try audio?.transcode(frame, write)
      // A frame that cannot be decoded is skipped.
      try? decoder?.decode(frame, give)
    case .drain:
      try audio?.drain(write)
      try? decoder?.drain(give)
      for rung in rungs { rung.worker.drain() }
      report()
      output.write(.drained)
    case .still(let still): output.write(.still(try StillImage.jpeg(of: still)))
    }
  }

  /// Outputs everything of the work before, and ends it.
  private func clear() throws {
    try audio?.drain(write)
    try? decoder?.drain(give)
    closeRungs()
    (audio, decoder) = (nil, nil)
  }

  private func configure(_ configuration: AudioTranscodeConfiguration) throws {
    try clear()
    let audio = try AudioTranscoder(configuration)
    self.audio = audio
    output.write(.track(rung: 0, record: ByteBuffer(bytes: audio.record)))
  }

  private func write(_ time: Int64, _ audio: ByteBuffer) {
    output.write(
      .frame(TranscodeReply.RungFrame(rung: 0, presentationTime: time, isSync: true, payload: audio)))
  }

  private func configure(_ configuration: TranscodeConfiguration) throws {
    try clear()
    decoder = try SourceDecoder(configuration)
    let encoders = try configuration.rungs.map { try RungEncoder($0, of: configuration, after: debts[$0.bitRate]) }
    debts = [:]
    for (index, encoder) in encoders.enumerated() {
      output.write(.track(rung: UInt8(clamping: index), record: ByteBuffer(bytes: encoder.configuration.record())))
    }
    // From the smallest rung on, so that each knows the next one.
    for index in encoders.indices.reversed() {
      let next = rungs.first.flatMap { Self.isFed(configuration.rungs[index], $0.rung) ? $0.worker : nil }
      let worker = try RungWorker(number: UInt8(clamping: index), encoder: encoders[index], output: output, next: next)
      rungs.insert(
        RungThreads(rung: configuration.rungs[index], encoder: encoders[index], worker: worker, isFed: false), at: 0)
      if next != nil { rungs[1].isFed = true }
    }
  }

  /// Whether the smaller rung is scaled from the larger rung's frames, which have fewer samples than the source's.
  private static func isFed(_ larger: TranscodeConfiguration.Rung, _ smaller: TranscodeConfiguration.Rung) -> Bool {
    larger.width >= smaller.width && larger.height >= smaller.height
  }

  private func give(_ frame: DecodedFrame) {
    guard spacing.keeps(isKey: frame.isKey) else {
      dropped += 1
      return captions.leave(frame.image.captions)
    }
    // A frame without its captions is better than none.
    if let captions = captions.next(frame.image.captions) { try? frame.image.set(captions: captions) }
    for rung in rungs where !rung.isFed { rung.worker.give(frame) }
  }

  private func report() {
    guard consumed > 0 || dropped > 0 else { return }
    output.write(.consumed(frames: consumed, dropped: dropped))
    (consumed, dropped) = (0, 0)
  }

  private func closeRungs() {
    for rung in rungs {
      rung.worker.close()
      debts[rung.rung.bitRate] = rung.encoder.debt
    }
    rungs = []
  }
}

/// Chooses the frames to drop if the machine is too slow: the later they are, the more, evenly spaced. Never drops a
/// frame that must become a key frame.
struct FrameDropper: Sendable {
  /// How long frames wait at present, in milliseconds.
  var lateness: Int64 = 0
  private var left: Int64 = 0

  mutating func keeps(isKey: Bool) -> Bool {
    guard isKey || left <= 0 else {
      left -= 1
      return false
    }
    left = lateness / TranscodeLimits.millisecondsLatePerDrop
    return true
  }
}

/// Writes whole replies, one after the other, from any thread of the worker. Blocks while the server does not read.
final class ReplyWriter: @unchecked Sendable {
  private let descriptor: Int32
  /// Lock for writing.
  private let turn = BoundedQueue<Void>(capacity: 1)

  init(descriptor: Int32) {
    self.descriptor = descriptor
    turn.give(())
  }

  func write(_ reply: TranscodeReply) {
    let bytes = TranscodeWire.encode(reply)
    _ = turn.take()
    defer { turn.give(()) }
    bytes.withUnsafeReadableBytes { bytes in
      var done = 0
      while done < bytes.count {
        let count = send(
          descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done, Int32(MSG_NOSIGNAL))
        if count < 0, errno == EINTR { continue }
        // The socket is closed; the reading thread ends the worker.
        guard count > 0 else { return }
        done += count
      }
    }
  }
}

/// One rung's thread.
private final class RungWorker: Sendable {
  private enum Job: Sendable {
    case frame(DecodedFrame)
    case drain(BoundedQueue<Void>)
  }

  private let jobs = BoundedQueue<Job>(capacity: TranscodeLimits.encoderQueue)
  private let isDone = BoundedQueue<Void>(capacity: 1)

  /// `next` is given each frame in this rung's size.
  init(number rung: UInt8, encoder: RungEncoder, output: ReplyWriter, next: RungWorker?) throws {
    let (jobs, isDone) = (jobs, isDone)
    try DedicatedThread.start(named: "weir-rung") {
      Self.run(rung, encoder, output, jobs, next)
      isDone.give(())
    }
  }

  func give(_ frame: DecodedFrame) { jobs.give(.frame(frame)) }

  /// Returns when everything given so far has been written.
  func drain() {
    let done = BoundedQueue<Void>(capacity: 1)
    if jobs.give(.drain(done)) { _ = done.take() }
  }

  /// Returns when everything given so far has been written, and ends the thread.
  func close() {
    jobs.close()
    _ = isDone.take()
  }

  private static func run(
    _ rung: UInt8, _ encoder: RungEncoder, _ output: ReplyWriter, _ jobs: BoundedQueue<Job>, _ next: RungWorker?
  ) {
    func write(_ time: Int64, _ isSync: Bool, _ payload: ByteBuffer) {
      output.write(
        .frame(
          TranscodeReply.RungFrame(rung: rung, presentationTime: time, isSync: isSync, payload: payload)))
    }
    while let job = jobs.take() {
      switch job {
      case .frame(let frame):
        do {
          let scaled = try encoder.scale(frame)
          next?.give(scaled)
          try encoder.encode(scaled, write)
        } catch {
          // Without its encoder the rung cannot continue: a new worker starts anew.
          output.write(.failed("rung \(rung): \(error)"))
        }
      case .drain(let done): done.give(())
      }
    }
    try? encoder.finish(write)
  }
}

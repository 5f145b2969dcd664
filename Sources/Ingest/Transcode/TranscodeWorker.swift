internal import CProcess
internal import FMP4
internal import Glibc
internal import NIOCore

/// The worker's side: reads what to make from a socket and writes what was made to it, until the other side closes.
/// One thread reads and decodes, one thread each scales and encodes a rung; audio is coded on the one that reads,
/// and so is a still picture. It holds nothing but what it is given.
package final class TranscodeWorker {
  private let descriptor: Int32
  private let output: ReplyWriter
  private var decoder: SourceDecoder?
  private var audio: AudioTranscoder?
  /// By the rungs' numbers.
  private var lanes: [Lane] = []
  /// By bit rates: what the encoders that are gone have given out ahead of their time.
  private var debts: [UInt32: VBVCarryOver] = [:]
  private var spacing = FrameDropper()
  private var consumed: UInt32 = 0
  private var dropped: UInt32 = 0

  private struct Lane {
    let rung: TranscodeConfiguration.Rung
    let encoder: RungEncoder
    let lane: RungWorker
    /// The lane before gives it its pictures.
    var isFed: Bool
  }

  /// - Parameter descriptor: a connected stream socket; it stays the caller's.
  package init(descriptor: Int32) {
    self.descriptor = descriptor
    output = ReplyWriter(descriptor: descriptor)
  }

  /// The worker as a process: its socket is its standard input.
  package static func runAsProcess() {
    // Pictures come and go by the megabyte: memory that is given back each time has to be cleared each time.
    weir_keep_freed_memory()
    WorkerConfinement.apply()
    TranscodeWorker(descriptor: STDIN_FILENO).run()
  }

  /// Returns when the other side has closed the socket, or does not keep to the protocol.
  package func run() {
    defer { closeLanes() }
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
    case .picture(let picture):
      consumed += 1
      spacing.lateness = Int64(picture.lateness)
      try audio?.transcode(picture, write)
      // What cannot be decoded is missing, and nothing else is.
      try? decoder?.decode(picture, give)
    case .drain:
      try audio?.drain(write)
      try? decoder?.drain(give)
      for lane in lanes { lane.lane.drain() }
      report()
      output.write(.drained)
    case .still(let still): output.write(.still(try StillImage.jpeg(of: still)))
    }
  }

  /// What was before comes out.
  private func clear() throws {
    try audio?.drain(write)
    try? decoder?.drain(give)
    closeLanes()
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
      .picture(TranscodeReply.RungPicture(rung: 0, presentationTime: time, isSync: true, payload: audio)))
  }

  private func configure(_ configuration: TranscodeConfiguration) throws {
    try clear()
    decoder = try SourceDecoder(configuration)
    let encoders = try configuration.rungs.map { try RungEncoder($0, of: configuration, after: debts[$0.bitRate]) }
    debts = [:]
    for (index, encoder) in encoders.enumerated() {
      output.write(.track(rung: UInt8(clamping: index), record: ByteBuffer(bytes: encoder.configuration.record())))
    }
    // From the smallest on: each lane knows the one after it.
    for index in encoders.indices.reversed() {
      let next = lanes.first.flatMap { Self.isFed(configuration.rungs[index], $0.rung) ? $0.lane : nil }
      let lane = try RungWorker(number: UInt8(clamping: index), encoder: encoders[index], output: output, next: next)
      lanes.insert(Lane(rung: configuration.rungs[index], encoder: encoders[index], lane: lane, isFed: false), at: 0)
      if next != nil { lanes[1].isFed = true }
    }
  }

  /// A smaller rung is scaled from the pictures of the one before it, which are fewer samples than the source's.
  private static func isFed(_ larger: TranscodeConfiguration.Rung, _ smaller: TranscodeConfiguration.Rung) -> Bool {
    larger.width >= smaller.width && larger.height >= smaller.height
  }

  private func give(_ picture: DecodedFrame) {
    guard spacing.keeps(isKey: picture.isKey) else {
      dropped += 1
      return
    }
    for lane in lanes where !lane.isFed { lane.lane.give(picture) }
  }

  private func report() {
    guard consumed > 0 || dropped > 0 else { return }
    output.write(.consumed(pictures: consumed, dropped: dropped))
    (consumed, dropped) = (0, 0)
  }

  private func closeLanes() {
    for lane in lanes {
      lane.lane.close()
      debts[lane.rung.bitRate] = lane.encoder.debt
    }
    lanes = []
  }
}

/// Which pictures are left out where the machine is too slow: the later they are, the more, evenly; never one that must
/// become a key frame.
struct FrameDropper: Sendable {
  /// How long pictures wait by now, in milliseconds.
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

/// Writes replies, whole and one after the other, from any of the worker's threads; waits while the server does not read.
final class ReplyWriter: @unchecked Sendable {
  private let descriptor: Int32
  /// Holds the right to write.
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
        // Nobody reads any more: the reading side ends the worker.
        guard count > 0 else { return }
        done += count
      }
    }
  }
}

/// One rung's thread.
private final class RungWorker: Sendable {
  private enum Job: Sendable {
    case picture(DecodedFrame)
    case drain(BoundedQueue<Void>)
  }

  private let jobs = BoundedQueue<Job>(capacity: TranscodeLimits.encoderQueue)
  private let isDone = BoundedQueue<Void>(capacity: 1)

  /// `next` is given each picture in this rung's size.
  init(number rung: UInt8, encoder: RungEncoder, output: ReplyWriter, next: RungWorker?) throws {
    let (jobs, isDone) = (jobs, isDone)
    try DedicatedThread.start(named: "weir-rung") {
      Self.run(rung, encoder, output, jobs, next)
      isDone.give(())
    }
  }

  func give(_ picture: DecodedFrame) { jobs.give(.picture(picture)) }

  /// Returns when everything that was given has been written.
  func drain() {
    let done = BoundedQueue<Void>(capacity: 1)
    if jobs.give(.drain(done)) { _ = done.take() }
  }

  /// The same, and the thread ends.
  func close() {
    jobs.close()
    _ = isDone.take()
  }

  private static func run(
    _ rung: UInt8, _ encoder: RungEncoder, _ output: ReplyWriter, _ jobs: BoundedQueue<Job>, _ next: RungWorker?
  ) {
    func write(_ time: Int64, _ isSync: Bool, _ payload: ByteBuffer) {
      output.write(
        .picture(
          TranscodeReply.RungPicture(rung: rung, presentationTime: time, isSync: isSync, payload: payload)))
    }
    while let job = jobs.take() {
      switch job {
      case .picture(let picture):
        do {
          let scaled = try encoder.scale(picture)
          next?.give(scaled)
          try encoder.encode(scaled, write)
        } catch {
          // Without its encoder the rung is gone: another worker begins anew.
          output.write(.failed("rung \(rung): \(error)"))
        }
      case .drain(let done): done.give(())
      }
    }
    try? encoder.finish(write)
  }
}

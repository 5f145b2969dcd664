internal import Base
internal import FMP4
internal import Glibc
internal import NIOCore
internal import Synchronization

/// The transcoder's thread. Sends queued input to the worker, as much as it can take, and receives its output. A worker
/// that crashes, hangs or breaks the protocol is ended. After a pause another one starts with the next key frame.
struct TranscodeSession {
  private let host: LadderTranscoder
  private var worker: RunningWorker?
  private var startedAt = MonotonicTime.zero
  /// A worker has been started, or could not be.
  private var hasBegun = false
  private var pause = TranscodeLimits.shortestPause
  private var notBefore = MonotonicTime.zero
  private var lastWord = MonotonicTime.zero
  /// When the end was first seen, with frames that are still to come.
  private var farewellSince: MonotonicTime?

  /// The limit follows from the requests, so that replies are checked before they are buffered.
  private var reader = TranscodeFrameReader(limit: TranscodeConversation().longestReply)
  /// Bytes still to be written.
  private var outgoing = ByteBuffer()
  /// The latest configuration, which each new worker needs.
  private var plan: TranscodePlan?
  private var conversation = TranscodeConversation()
  private let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 17, alignment: 16)

  init(host: LadderTranscoder) { self.host = host }

  /// Returns when the transcoder is finished and everything was output.
  mutating func run() {
    defer { chunk.deallocate() }
    while true {
      var events: [TranscodeEvent] = []
      let now = MonotonicTime.now()
      fill(&events, now)
      do {
        try flush()
        let sending = outgoing.readableBytes
        host.shared.withLock { $0.sending = sending }
        try receive(&events, now)
        try watch(now)
        dismiss(now)
      } catch {
        lose("\(error)", &events, now)
      }
      let isOver = isOver(now)
      if isOver { events.append(.ended) }
      host.give(events)
      if isOver { break }
      if events.isEmpty || worker == nil {
        let idle: Int32 = isResting ? 10_000 : 100
        host.wait(for: worker?.socket, writing: outgoing.readableBytes > 0, milliseconds: worker == nil ? idle : 250)
      }
    }
    _ = worker?.end()
  }

  private mutating func isOver(_ now: MonotonicTime) -> Bool {
    let (isFinishing, isEmpty) = host.shared.withLock { ($0.isFinishing, $0.backlog.isEmpty) }
    guard isFinishing else { return false }
    if worker == nil {
      abandon()
      return true
    }
    if isEmpty, outgoing.readableBytes == 0, conversation.isSilent { return true }
    let since = farewellSince ?? now
    farewellSince = since
    let isOver =
      plan?.source.kind == .audio
      ? now &- max(since, lastWord) >= TranscodeLimits.farewell || now &- since >= TranscodeLimits.audioFarewell
      : now &- since >= TranscodeLimits.farewell
    if isOver { abandon() }
    return isOver
  }

  /// What is left will not be decoded.
  private func abandon() {
    host.shared.withLock { shared in
      let before = shared.backlog.discarded
      shared.backlog.abandon()
      host.note(dropped: shared.backlog.discarded - before + conversation.inFlight, &shared.status)
    }
  }

  // MARK: To the worker

  /// Takes from the queue what the worker can have now.
  private mutating func fill(_ events: inout [TranscodeEvent], _ now: MonotonicTime) {
    if worker == nil, hasWork, now >= notBefore { start(now) }
    while outgoing.readableBytes < 1 << 18, conversation.takesMore {
      let hasWorker = worker != nil
      let entry = host.shared.withLock { shared in
        hasWorker ? shared.backlog.next() : shared.backlog.nextWithoutWorker()
      }
      guard let entry else { return }
      switch entry {
      case .configure(let plan):
        self.plan = plan
        if hasWorker { send(plan, now) }
      case .frame(let frame):
        if conversation.isSilent { lastWord = now }
        conversation.sent(frame)
        outgoing.writeImmutableBuffer(TranscodeWire.encode(.frame(frame)))
      case .drain(let time):
        if hasWorker {
          if conversation.isSilent { lastWord = now }
          conversation.sentDrain(nothingBefore: time)
          outgoing.writeImmutableBuffer(TranscodeWire.encode(.drain))
        } else {
          events.append(.lost(before: time))
        }
      }
    }
  }

  private var hasWork: Bool {
    // A source that is over at once still has what it sent.
    host.shared.withLock {
      $0.source != nil && !$0.isResting && (!$0.isFinishing || (!hasBegun && !$0.backlog.isEmpty))
    }
  }

  private mutating func send(_ plan: TranscodePlan, _ now: MonotonicTime) {
    // It may have been idle for long.
    if conversation.isSilent { lastWord = now }
    conversation.sent(plan)
    reader.limit = UInt32(clamping: conversation.longestReply)
    outgoing.writeImmutableBuffer(TranscodeWire.encode(plan.request))
  }

  private mutating func start(_ now: MonotonicTime) {
    hasBegun = true
    do throws(WorkerFailure) {
      let worker = try host.startWorker()
      self.worker = worker
      (startedAt, lastWord) = (now, now)
      let flags = fcntl(worker.socket, F_GETFL)
      _ = fcntl(worker.socket, F_SETFL, flags | O_NONBLOCK)
      host.shared.withLock { shared in
        shared.status.worker = .running
        shared.status.processID = worker.processID
      }
      if let plan { send(plan, now) }
    } catch {
      host.warn("the transcoder cannot be started: \(error.description)")
      rest(now)
    }
  }

  private mutating func flush() throws(WorkerLost) {
    guard let worker, outgoing.readableBytes > 0 else { return }
    let count = outgoing.withUnsafeReadableBytes { bytes in
      Glibc.send(worker.socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
    }
    if count < 0 {
      if errno == EAGAIN || errno == EINTR { return }
      throw WorkerLost("it no longer reads its input")
    }
    outgoing.moveReaderIndex(forwardBy: count)
    if outgoing.readableBytes == 0 { outgoing.clear() }
  }

  // MARK: From the worker

  private mutating func receive(_ events: inout [TranscodeEvent], _ now: MonotonicTime) throws(WorkerLost) {
    guard let worker else { return }
    let count = recv(worker.socket, chunk.baseAddress, chunk.count, 0)
    if count < 0 {
      if errno == EAGAIN || errno == EINTR { return }
      throw WorkerLost("its socket failed")
    }
    if count == 0 { throw WorkerLost(conversation.farewell ?? "it closed its socket") }
    lastWord = now
    reader.append(UnsafeRawBufferPointer(rebasing: chunk[..<count]))
    do {
      while let (type, body) = try reader.next() {
        let dropped = try conversation.take(try TranscodeWire.reply(type, body), &events)
        if dropped > 0 { host.shared.withLock { host.note(dropped: dropped, &$0.status) } }
      }
    } catch {
      throw WorkerLost("it does not keep to the protocol: \(error.description)")
    }
  }

  private func watch(_ now: MonotonicTime) throws(WorkerLost) {
    guard worker != nil, !conversation.isSilent, now &- lastWord > TranscodeLimits.silence else { return }
    throw WorkerLost("it has sent nothing for \(TranscodeLimits.silence / 1_000_000_000) s")
  }

  private var isResting: Bool { host.shared.withLock { $0.isResting && !$0.isFinishing && $0.backlog.isEmpty } }

  /// Ends a worker that has nothing to do for a while, once it has given everything.
  private mutating func dismiss(_ now: MonotonicTime) {
    guard worker != nil, isResting, outgoing.readableBytes == 0, conversation.isSilent else { return }
    _ = worker?.end()
    worker = nil
    (conversation, notBefore) = (TranscodeConversation(), now)
    reader = TranscodeFrameReader(limit: conversation.longestReply)
    host.shared.withLock { shared in
      shared.status.worker = .idle
      shared.status.processID = nil
    }
  }

  private mutating func lose(_ reason: String, _ events: inout [TranscodeEvent], _ now: MonotonicTime) {
    let ending = worker?.end() ?? ""
    worker = nil
    if now &- startedAt >= TranscodeLimits.healthyLife { pause = TranscodeLimits.shortestPause }
    if let time = conversation.lost { events.append(.lost(before: time)) }
    conversation = TranscodeConversation()
    reader = TranscodeFrameReader(limit: conversation.longestReply)
    outgoing = ByteBuffer()
    let isFinishing = host.shared.withLock { shared in
      shared.sending = 0
      let before = shared.backlog.discarded
      shared.backlog.restart()
      host.note(dropped: shared.backlog.discarded - before, &shared.status)
      shared.status.restarts += 1
      return shared.isFinishing
    }
    if !isFinishing {
      host.warn(
        "the transcoder was lost (\(reason); \(ending)); the source continues, its rungs return in"
          + " \(pause / 1_000_000) ms with the next key frame")
    }
    rest(now)
  }

  private mutating func rest(_ now: MonotonicTime) {
    notBefore = now &+ pause
    pause = min(pause &* 2, TranscodeLimits.longestPause)
    host.shared.withLock { shared in
      shared.status.worker = .waiting
      shared.status.processID = nil
    }
  }
}

/// Why a worker was given up.
private struct WorkerLost: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

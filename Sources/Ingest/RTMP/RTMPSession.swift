internal import FMP4
internal import Logging
internal import NIOCore

/// One connection of the RTMP server as a value: bytes in, actions out. Handshake, then chunks to messages, then
/// commands and, once a publication is admitted, media events. Nothing after `.close` matters.
struct RTMPSession {
  private enum State {
    case handshaking(Handshake)
    /// How far it has come, `commands` knows.
    case conversing
    case closed
  }

  private var state = State.handshaking(Handshake())
  private var reader = ChunkReader()
  private var commands = CommandSession()
  private var publication: FLVPublication?
  /// What it has told; empty between two calls.
  private var told: [PublicationAction] = []
  private let wallOffset: Int64
  private var pace = MessagePace()
  /// When messages are taken again that came too fast; `goOn` is to be called then, and until then nothing be read.
  private(set) var heldUntil: Int64?
  /// Input that came while the gate was asked, or too fast.
  private var waiting = ByteBuffer()
  private var answers = ByteBuffer()
  /// Bytes received after the handshake, modulo 2³², and the count at the last acknowledgement (RTMP 5.4.3).
  private var received: UInt32 = 0
  private var acknowledged: UInt32 = 0
  private var window: UInt32 = 2_500_000

  /// `wallOffset` as in `SteadyClock`, in nanoseconds.
  init(wallOffset: Int64) {
    self.wallOffset = wallOffset
  }

  /// What the encoder called itself in its metadata.
  var encoder: String { publication?.encoder ?? "" }

  // MARK: input

  /// Takes what has arrived. `now` is monotonic, in nanoseconds.
  mutating func receive(_ bytes: inout ByteBuffer, now: Int64, to actions: inout [RTMPAction]) {
    count(bytes.readableBytes)
    guard heldUntil == nil else {
      waiting.writeBuffer(&bytes)
      acknowledge(now)
      return flush(to: &actions)
    }
    if waiting.readableBytes > 0 {
      waiting.writeBuffer(&bytes)
      swap(&waiting, &bytes)
      waiting = ByteBuffer()
    }
    do throws(WireError) {
      try read(&bytes, now, to: &actions)
    } catch {
      fail(error, to: &actions)
    }
    acknowledge(now)
    flush(to: &actions)
  }

  /// The handshake is not complete.
  var isHandshaking: Bool { if case .handshaking = state { true } else { false } }

  private mutating func read(_ bytes: inout ByteBuffer, _ now: Int64, to actions: inout [RTMPAction]) throws(WireError)
  {
    while true {
      switch state {
      case .handshaking(var handshake):
        let step = try handshake.receive(&bytes)
        state = .handshaking(handshake)
        switch step {
        case .needsMore: return
        case .answer(var answer): answers.writeBuffer(&answer)
        case .done:
          state = .conversing
          received = UInt32(truncatingIfNeeded: bytes.readableBytes)
          acknowledged = 0
        }
      case .conversing where commands.isAsking:
        waiting.writeBuffer(&bytes)
        return
      case .conversing:
        heldUntil = pace.pause(at: now)
        guard heldUntil == nil else {
          // Nothing waits here: what did is in `bytes`.
          swap(&waiting, &bytes)
          return
        }
        guard let message = try reader.next(&bytes, now: now) else { return }
        pace.count(message.payload.readableBytes, at: now)
        try receive(message, now, to: &actions)
      case .closed:
        bytes.clear()
        return
      }
    }
  }

  private mutating func receive(_ message: RTMPMessage, _ now: Int64, to actions: inout [RTMPAction]) throws(WireError)
  {
    switch message.type {
    case RTMPMessageType.video, RTMPMessageType.audio, RTMPMessageType.aggregate:
      // Media outside of an admitted publication belongs to nobody.
      guard publication != nil else { return }
      try receiveMedia(message, now, to: &actions)
    case RTMPMessageType.dataAMF0, RTMPMessageType.dataAMF3:
      guard publication != nil, let metadata = PublicationMetadata(try values(message)) else { return }
      publication?.receive(metadata)
    case RTMPMessageType.commandAMF0, RTMPMessageType.commandAMF3:
      let outcome = try commands.receive(
        try values(message), messageStream: message.streamID, to: &answers)
      obey(outcome, to: &actions)
    case RTMPMessageType.userControl: receiveUserControl(message.payload)
    case RTMPMessageType.windowAcknowledgementSize:
      if let size: UInt32 = message.payload.getInteger(at: message.payload.readerIndex), size > 0 { window = size }
    default: break
    }
  }

  /// The values of a command or data message. Those of AMF3 begin with a byte that says nothing (RTMP 7.1.1).
  private func values(_ message: RTMPMessage) throws(WireError) -> [AMFValue] {
    var payload = message.payload
    if message.type == RTMPMessageType.commandAMF3 || message.type == RTMPMessageType.dataAMF3,
      payload.getInteger(at: payload.readerIndex) == UInt8(0)
    {
      payload.moveReaderIndex(forwardBy: 1)
    }
    return try AMF0.readAll(&payload)
  }

  private mutating func receiveUserControl(_ payload: ByteBuffer) {
    var payload = payload
    guard let event: UInt16 = payload.readInteger(), event == UserControlEvent.pingRequest.rawValue,
      let time: UInt32 = payload.readInteger()
    else { return }
    commands.writer.writeUserControl(.pingResponse, time, to: &answers)
  }

  // MARK: media

  private mutating func receiveMedia(
    _ message: RTMPMessage, _ now: Int64, to actions: inout [RTMPAction]
  ) throws(WireError) {
    defer { passOn(to: &actions) }
    switch message.type {
    case RTMPMessageType.video:
      try publication?.receiveVideo(message.payload, timestamp: message.timestamp, now: now, to: &told)
    case RTMPMessageType.audio:
      try publication?.receiveAudio(message.payload, timestamp: message.timestamp, now: now, to: &told)
    default:
      var aggregate = AggregateMessage(message)
      var count = 0
      while let part = try aggregate.next() {
        count += 1
        guard count <= RTMPLimits.messagesOfAggregate else {
          throw WireError(
            .limit, "more than \(RTMPLimits.messagesOfAggregate) messages in one aggregate message; send smaller ones")
        }
        pace.count(part.payload.readableBytes, at: now)
        try receive(part, now, to: &actions)
      }
    }
  }

  private mutating func passOn(to actions: inout [RTMPAction]) {
    for action in told { actions.append(.media(action)) }
    // Not that of a beginning that was held back.
    told.removeAll(keepingCapacity: told.count < 64)
  }

  /// When `tick` wants to be called next, in nanoseconds; nil when nothing waits.
  func deadline(after now: Int64) -> Int64? {
    let media = publication?.deadline(after: now)
    return owesAcknowledgement ? min(pace.relief, media ?? .max) : media
  }

  /// Time has passed.
  mutating func tick(now: Int64, to actions: inout [RTMPAction]) {
    do throws(WireError) {
      defer { passOn(to: &actions) }
      try publication?.tick(now: now, to: &told)
    } catch {
      fail(error, to: &actions)
    }
    acknowledge(now)
    flush(to: &actions)
  }

  // MARK: messages that came too fast

  /// The time that `heldUntil` names has come: takes what waits, perhaps not all of it.
  mutating func goOn(now: Int64, to actions: inout [RTMPAction]) {
    guard heldUntil != nil else { return }
    heldUntil = nil
    resume(now, to: &actions)
  }

  /// The peer has left: what waits of its words is taken now, as much as may come at once.
  mutating func takeRest(now: Int64, to actions: inout [RTMPAction]) {
    pace.forgive()
    goOn(now: now, to: &actions)
  }

  // MARK: the gate's answer, and the end

  /// The gate has admitted the publisher; input that waited is read.
  mutating func admit(now: Int64, to actions: inout [RTMPAction]) {
    guard commands.isAsking else { return }
    reader.trusted = true
    publication = FLVPublication(wallOffset: wallOffset)
    commands.accept(to: &answers)
    flush(to: &actions)
    resume(now, to: &actions)
  }

  /// The peer hears `reason`; the connection is to be closed. Used for a refusal by the gate as well as for the end
  /// of a publication by the server.
  mutating func refuse(reason: String, ending: RTMPAction.Ending, to actions: inout [RTMPAction]) {
    if case .closed = state { return }
    dropWaiting()
    commands.refuse(code: "NetStream.Publish.BadName", reason: reason, to: &answers)
    publication = nil
    state = .closed
    flush(to: &actions)
    actions.append(.close(ending))
  }

  private mutating func resume(_ now: Int64, to actions: inout [RTMPAction]) {
    guard waiting.readableBytes > 0 else { return }
    var bytes = waiting
    waiting = ByteBuffer()
    received &-= UInt32(truncatingIfNeeded: bytes.readableBytes)
    receive(&bytes, now: now, to: &actions)
  }

  private mutating func obey(_ outcome: CommandSession.Outcome, to actions: inout [RTMPAction]) {
    switch outcome {
    case .nothing: break
    case .publish(let intent):
      // What was answered so far goes out before whatever the gate leads to.
      flush(to: &actions)
      actions.append(.ask(intent))
    case .finished:
      publication = nil
      actions.append(.media(.event(.end(.finished))))
    case .refused(let reason):
      state = .closed
      flush(to: &actions)
      actions.append(.refused(reason))
      actions.append(.close(.failure))
    }
  }

  /// The peer's bytes cannot be served: it hears why where it can, and only its own publication ends.
  private mutating func fail(_ error: WireError, to actions: inout [RTMPAction]) {
    switch state {
    case .handshaking: actions.append(.log(.info, "handshake failed: \(error.reason)"))
    case .conversing:
      commands.refuse(code: "NetStream.Publish.BadName", reason: error.reason, to: &answers)
      if publication != nil {
        actions.append(.media(.event(.end(.failed(error.reason)))))
      } else {
        actions.append(.log(.warning, "closed: \(error.reason)"))
      }
    case .closed: return
    }
    publication = nil
    state = .closed
    dropWaiting()
    flush(to: &actions)
    actions.append(.close(.failure))
  }

  private mutating func dropWaiting() {
    heldUntil = nil
    waiting = ByteBuffer()
  }

  // MARK: answers

  private mutating func count(_ bytes: Int) {
    received &+= UInt32(truncatingIfNeeded: bytes)
  }

  /// Whether the peer is to hear how much has come (RTMP 5.4.3).
  private var owesAcknowledgement: Bool {
    switch state {
    case .conversing: !commands.isAsking && received &- acknowledged >= window
    case .handshaking, .closed: false
    }
  }

  /// Not while it sends too fast: the system of a peer that has closed answers every word with a reset, and what it had still
  /// to send is lost then. Who waits for an acknowledgement hears it after a pause (`deadline`).
  private mutating func acknowledge(_ now: Int64) {
    guard owesAcknowledgement, pace.relief <= now else { return }
    acknowledged = received
    commands.writer.writeAcknowledgement(received, to: &answers)
  }

  private mutating func flush(to actions: inout [RTMPAction]) {
    guard answers.readableBytes > 0 else { return }
    actions.append(.send(answers))
    answers = ByteBuffer()
  }
}

internal import Base
internal import FMP4
internal import Logging
internal import NIOCore
internal import Publishing

/// One RTMP connection as a value type: bytes go in, actions come out. First the handshake, then messages and commands.
/// Media events follow once a publication is admitted. Nothing after `.close` has an effect.
struct RTMPSession {
  private enum State {
    case handshaking(Handshake)
    /// After the handshake; `commands` has the details.
    case conversing
    case closed
  }

  private var state = State.handshaking(Handshake())
  private var reader = ChunkReader()
  private var commands = CommandSession()
  private var publication: FLVPublication?
  /// Data that cannot be read were told of.
  private var hasToldFault = false
  /// Actions of the publication; empty between two calls.
  private var told: [PublicationAction] = []
  private let reading: ClockReading
  private var pace = MessagePace()
  private var threshold = ReadThreshold()
  /// Time until which messages that came too fast wait. Call `goOn` then, and read nothing until then.
  private(set) var heldUntil: MonotonicTime?
  /// Input that arrived while the gate was asked, or too fast.
  private var waiting = ByteBuffer()
  private var answers = ByteBuffer()
  /// Bytes received after the handshake, modulo 2³², and their number at the last acknowledgement (RTMP 5.4.3).
  private var received: UInt32 = 0
  private var acknowledged: UInt32 = 0
  private var window: UInt32 = 2_500_000

  init(reading: ClockReading) {
    self.reading = reading
  }

  /// Bytes that are held: of unfinished messages, of input that waits, and of media before the start.
  var heldBytes: Int { reader.partialBytes &+ waiting.readableBytes &+ (publication?.heldBytes ?? 0) }

  /// Whether a publication waits for its start, and how many bytes of its media may.
  var awaitsStart: Bool { publication?.awaitsStart ?? false }
  var mostHeldAtStart = Int.max { didSet { publication?.mostHeldAtStart = mostHeldAtStart } }

  /// Name of the encoder in its metadata.
  var encoder: String { publication?.encoder ?? "" }

  // MARK: input

  /// Bytes that the system may collect before it wakes the reader; 1: none.
  func bytesToCollect(now: MonotonicTime) -> Int {
    guard publication != nil, heldUntil == nil, window >= RTMPLimits.collectingWindow else { return 1 }
    guard threshold.mayCollect else { return 1 }
    if let missing = reader.missing { return max(1, min(missing, RTMPLimits.collectedBytes)) }
    return threshold.bytes(now: now)
  }

  /// Between messages, what comes is read at once from now on, until frames have come evenly for a while.
  mutating func collectNothing() {
    if reader.missing == nil { threshold.forget() }
  }

  /// Takes received bytes.
  mutating func receive(_ bytes: inout ByteBuffer, now: MonotonicTime, to actions: inout [RTMPAction]) {
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
    if publication != nil, reader.endsWithHeader { threshold.sawHeaderAlone() }
    acknowledge(now)
    flush(to: &actions)
  }

  /// Whether the handshake is incomplete.
  var isHandshaking: Bool { if case .handshaking = state { true } else { false } }

  private mutating func read(_ bytes: inout ByteBuffer, _ now: MonotonicTime, to actions: inout [RTMPAction])
    throws(WireError)
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
          // `waiting` is empty here: its content is in `bytes`.
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

  private mutating func receive(_ message: RTMPMessage, _ now: MonotonicTime, to actions: inout [RTMPAction])
    throws(WireError)
  {
    switch message.type {
    case RTMPMessageType.video, RTMPMessageType.audio, RTMPMessageType.aggregate:
      // Media outside of an admitted publication is ignored.
      guard publication != nil else { return }
      switch message.type {
      case RTMPMessageType.video:
        threshold.saw(frame: message.payload.readableBytes, now: now)
      case RTMPMessageType.audio: threshold.sawAudio()
      default: break
      }
      try receiveMedia(message, now, to: &actions)
    case RTMPMessageType.dataAMF0, RTMPMessageType.dataAMF3:
      guard publication != nil else { return }
      receiveData(message, to: &actions)
    case RTMPMessageType.commandAMF0, RTMPMessageType.commandAMF3:
      var values = valueBytes(message)
      let outcome = try commands.receive(
        try AMF0.readAll(&values), messageStream: message.streamID, to: &answers)
      try obey(outcome, to: &actions)
    case RTMPMessageType.userControl: receiveUserControl(message.payload)
    case RTMPMessageType.windowAcknowledgementSize:
      if let size: UInt32 = message.payload.getInteger(at: message.payload.readerIndex), size > 0 { window = size }
    default: break
    }
  }

  /// The bytes of a command or data message. AMF3 messages begin with a byte to skip (RTMP 7.1.1).
  private func valueBytes(_ message: RTMPMessage) -> ByteBuffer {
    var payload = message.payload
    if message.type == RTMPMessageType.commandAMF3 || message.type == RTMPMessageType.dataAMF3,
      payload.getInteger(at: payload.readerIndex) == UInt8(0)
    {
      payload.moveReaderIndex(forwardBy: 1)
    }
    return payload
  }

  /// Data describe the media. What can be read of them counts, and what cannot ends nothing.
  private mutating func receiveData(_ message: RTMPMessage, to actions: inout [RTMPAction]) {
    var bytes = valueBytes(message)
    let (values, fault, isCut) = AMF0.readBeginning(&bytes)
    if let fault, !hasToldFault {
      hasToldFault = true
      actions.append(.log(.warning, "data beside the media are dropped from where they cannot be read: \(fault)"))
    }
    guard var metadata = PublicationMetadata(values) else { return }
    metadata.isCut = isCut
    publication?.receive(metadata)
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
    _ message: RTMPMessage, _ now: MonotonicTime, to actions: inout [RTMPAction]
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
    // Mostly it is one, which is moved.
    if told.count == 1, let action = told.popLast() { return actions.append(.media(action)) }
    for action in told { actions.append(.media(action)) }
    // Releases the memory of a long list, such as that of a start that was held back.
    told.removeAll(keepingCapacity: told.count < 64)
  }

  /// Time of the next `tick`, in nanoseconds. Nil if nothing waits.
  func deadline(after now: MonotonicTime) -> MonotonicTime? {
    let media = publication?.deadline(after: now)
    return owesAcknowledgement ? min(pace.relief, media ?? .max) : media
  }

  /// Handles the passing of time.
  mutating func tick(now: MonotonicTime, to actions: inout [RTMPAction]) {
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

  /// Takes waiting messages after `heldUntil`, perhaps not all of them.
  mutating func goOn(now: MonotonicTime, to actions: inout [RTMPAction]) {
    guard heldUntil != nil else { return }
    heldUntil = nil
    resume(now, to: &actions)
  }

  /// Takes the waiting messages of a peer that has disconnected, up to a whole burst.
  mutating func takeRest(now: MonotonicTime, to actions: inout [RTMPAction]) {
    pace.forgive()
    goOn(now: now, to: &actions)
    do throws(WireError) {
      try finishMedia(to: &actions)
    } catch {
      fail(error, to: &actions)
    }
  }

  /// Takes what the publication still holds of a frame or of media whose time may be wrong.
  private mutating func finishMedia(to actions: inout [RTMPAction]) throws(WireError) {
    defer { passOn(to: &actions) }
    try publication?.finish(to: &told)
  }

  // MARK: the gate's decision, and the end

  /// Starts the publication that the gate has admitted, and reads the input that waited.
  mutating func admit(now: MonotonicTime, to actions: inout [RTMPAction]) {
    guard commands.isAsking else { return }
    reader.trusted = true
    publication = FLVPublication(reading: reading)
    publication?.mostHeldAtStart = mostHeldAtStart
    commands.accept(to: &answers)
    flush(to: &actions)
    resume(now, to: &actions)
  }

  /// Sends `reason` to the peer and asks to close the connection. Used for refusals by the gate, and when the server
  /// ends a publication.
  mutating func refuse(reason: String, ending: RTMPAction.Ending, to actions: inout [RTMPAction]) {
    if case .closed = state { return }
    dropInput()
    commands.refuse(code: "NetStream.Publish.BadName", reason: reason, to: &answers)
    publication = nil
    state = .closed
    flush(to: &actions)
    actions.append(.close(ending))
  }

  private mutating func resume(_ now: MonotonicTime, to actions: inout [RTMPAction]) {
    guard waiting.readableBytes > 0 else { return }
    var bytes = waiting
    waiting = ByteBuffer()
    received &-= UInt32(truncatingIfNeeded: bytes.readableBytes)
    receive(&bytes, now: now, to: &actions)
  }

  private mutating func obey(_ outcome: CommandSession.Outcome, to actions: inout [RTMPAction]) throws(WireError) {
    switch outcome {
    case .nothing: break
    case .publish(let intent):
      // The responses so far are sent before those that follow from the gate's decision.
      flush(to: &actions)
      actions.append(.ask(intent))
    case .finished:
      try finishMedia(to: &actions)
      publication = nil
      // Nobody counts what it holds from here on.
      reader.trusted = false
      actions.append(.media(.event(.end(.finished))))
      guard reader.partialBytes <= RTMPLimits.partialBytesBeforePublish else {
        throw WireError(
          .limit,
          "unfinished messages hold \(reader.partialBytes) bytes after the end of the stream; "
            + "at most \(RTMPLimits.partialBytesBeforePublish) are kept")
      }
    case .refused(let reason):
      state = .closed
      flush(to: &actions)
      actions.append(.refused(reason))
      actions.append(.close(.failure))
    }
  }

  /// Ends the connection because of invalid bytes. Sends the reason if possible; only this publication ends.
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
    dropInput()
    flush(to: &actions)
    actions.append(.close(.failure))
  }

  /// Frees what is held of messages that nobody will take.
  private mutating func dropInput() {
    heldUntil = nil
    waiting = ByteBuffer()
    reader = ChunkReader()
  }

  // MARK: responses

  private mutating func count(_ bytes: Int) {
    received &+= UInt32(truncatingIfNeeded: bytes)
  }

  /// Whether an acknowledgement is due (RTMP 5.4.3). A peer that waits for it may have sent bytes that are collected, so
  /// it comes earlier by as many.
  private var owesAcknowledgement: Bool {
    let due = window < RTMPLimits.collectingWindow ? window : window &- UInt32(RTMPLimits.collectedBytes)
    return switch state {
    case .conversing: !commands.isAsking && received &- acknowledged >= due
    case .handshaking, .closed: false
    }
  }

  /// Sends an acknowledgement, but not while the peer sends too fast. The system of a peer that has closed answers each
  /// packet with a reset, and its unsent data is then lost. A peer that waits for an acknowledgement gets it after a
  /// pause (`deadline`).
  private mutating func acknowledge(_ now: MonotonicTime) {
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

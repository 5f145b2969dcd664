internal import NIOCore

/// The receiving side of an HTTP/2 connection (RFC 9113): bytes of the client in, what they mean for the server out. A value;
/// it knows which streams are open, what the client may still send on each, and how often it did what costs the server more
/// than the client. `HTTP2Connection` takes one event after the other, and tells what it sends itself.
///
/// It is held against NIO's HTTP/2 (`HTTP2DifferentialTests` has the list of differences).
struct HTTP2Receiver {
  enum Event {
    /// A new request. Without a head, its fields are too large. `isEnd`: nothing more comes.
    case request(stream: UInt32, RequestHead?, isEnd: Bool)
    /// A stream beyond those that may be open; it is closed.
    case surplus(stream: UInt32)
    /// Fields behind a body, which end it.
    case trailers(stream: UInt32)
    case data(stream: UInt32, ByteBuffer, isEnd: Bool)
    /// The client resets a stream, which is closed.
    case reset(stream: UInt32)
    case windowUpdate(stream: UInt32, Int)
    case settings(HTTP2PeerSettings)
    case ping(UInt64)
    case pong(UInt64)
    /// An error that ends a stream, which is closed here. It must be reset.
    case streamFault(stream: UInt32, HTTP2Code)
  }

  /// Bytes that the client may send before the next WINDOW_UPDATE (RFC 9113 §6.9.2).
  static let window = 65_535
  /// The reset streams whose late frames are tolerated. Older ones count as closed by both sides.
  static let resetStreams = 128
  /// Resets, control frames, and errors of streams: each so many within `rateSeconds`.
  static let rate = 200
  static let rateSeconds = 30
  /// Errors of streams that a connection outlives.
  static let glitches = 200
  /// Empty DATA frames in a row that are no end of a stream.
  static let emptyData = 1
  /// WINDOW_UPDATE and unknown frames that each request accounts for. Browsers open the window of a new stream, state its
  /// priority (RFC 9218), and may send a frame of no meaning.
  private static let allowedPerRequest = 4
  /// WINDOW_UPDATE frames that `count` bytes of bodies account for. Clients open both windows at least once for several frames, at
  /// most for each part that they take from a buffer. Fewer than 512 bytes account for none: a client with windows of a byte would
  /// have two more with each.
  static func allowed(for count: Int) -> Int { count < leastAccounted ? 0 : 2 &+ count / leastAccounted }
  static let leastAccounted = 512

  /// A stream that is not closed.
  struct Stream {
    let id: UInt32
    var remoteHasEnded: Bool
    /// The response was sent as a whole.
    var localHasEnded = false
    /// What the client may still send.
    var window = HTTP2Receiver.window
    /// Bytes that are missing of Content-Length.
    var missing: Int?
  }

  /// The time of the connection's loop, in ticks.
  var now = 0
  /// Bytes that the client may still send on the connection.
  var window = HTTP2Receiver.window
  /// In the order of their numbers.
  private(set) var streams: [Stream] = []
  /// The last stream that the client opened, including surplus ones.
  private(set) var lastStream: UInt32 = 0

  private let limits: HTTP2HeadBuilder.Limits
  /// Streams that the client may have open.
  private let openStreams: Int
  private var frames: HTTP2FrameReader
  private var fields: FieldSectionReader
  private var last = HTTP2LastSection()
  /// Streams that were reset here, in a ring.
  private var resetHere: [UInt32] = []
  private var oldestReset = 0
  private var awaitsAcknowledgement = true
  private var emptyData = 0
  private var glitches = 0
  /// WINDOW_UPDATE and unknown frames that do not count as control frames yet.
  private var allowance = 0
  private var resets: SlidingWindowLimit
  private var controls: SlidingWindowLimit
  private var faults: SlidingWindowLimit

  /// `ticks` is the number of ticks in `rateSeconds`.
  init(limits: HTTPLimits, ticks: Int) {
    self.limits = HTTP2HeadBuilder.Limits(limits)
    openStreams = limits.streams
    // Up to twice the limit is read, so that the client gets a 431 instead of a closed connection.
    frames = HTTP2FrameReader(sectionBytes: 2 &* limits.headerBytes)
    fields = FieldSectionReader(largest: 2 &* limits.headerBytes)
    let rate = SlidingWindowLimit(limit: Self.rate, ticks: ticks)
    (resets, controls, faults) = (rate, rate, rate)
  }

  mutating func receive(_ bytes: ByteBuffer) { frames.receive(bytes) }

  /// Bytes that wait for the rest of their frame.
  var heldBytes: Int { frames.heldBytes }

  /// A field section has begun whose end has not come.
  var isWithinSection: Bool { frames.isWithinSection }

  /// All events were taken.
  mutating func settle() { frames.settle() }

  /// The client has reason for `count` more WINDOW_UPDATE frames.
  mutating func allow(_ count: Int) { allowance &+= count }

  /// Takes the next event; nil when more bytes are needed. A fault ends the connection.
  mutating func next() throws(HTTP2FrameReader.Fault) -> Event? {
    while let frame = try frames.next() {
      if let event = try take(frame) { return event }
    }
    return nil
  }

  // MARK: Streams

  func index(of stream: UInt32) -> Int? {
    // The newest ones are the ones that frames come for.
    var index = streams.count &- 1
    while index >= 0, streams[index].id >= stream {
      if streams[index].id == stream { return index }
      index &-= 1
    }
    return nil
  }

  /// The response of a stream was sent as a whole. True when both sides have ended, so that it is closed.
  mutating func endLocally(_ stream: UInt32) -> Bool {
    guard let index = index(of: stream) else { return false }
    streams[index].localHasEnded = true
    return closeIfEnded(index)
  }

  /// A stream is reset here. Late frames of the client for it are tolerated.
  mutating func resetLocally(_ stream: UInt32) {
    if let index = index(of: stream) { streams.remove(at: index) }
    if resetHere.count < Self.resetStreams {
      resetHere.append(stream)
    } else {
      resetHere[oldestReset] = stream
      oldestReset = (oldestReset &+ 1) % Self.resetStreams
    }
  }

  /// More bytes may come on a stream.
  mutating func reopen(_ index: Int) { streams[index].window = Self.window }

  private mutating func closeIfEnded(_ index: Int) -> Bool {
    guard streams[index].remoteHasEnded, streams[index].localHasEnded else { return false }
    streams.remove(at: index)
    return true
  }

  // MARK: Frames

  private mutating func take(_ frame: HTTP2FrameReader.Frame) throws(HTTP2FrameReader.Fault) -> Event? {
    switch frame {
    case .headers(let stream, let section, let isEnd):
      emptyData = 0
      return try headers(stream, section, isEnd: isEnd)
    case .data(let stream, let bytes, let begins, let isEnd):
      if let begins, let event = try begin(begins, on: stream) { return event }
      guard let index = index(of: stream), !streams[index].remoteHasEnded else { return nil }
      if isEnd {
        streams[index].remoteHasEnded = true
        _ = closeIfEnded(index)
      }
      return .data(stream: stream, bytes, isEnd: isEnd)
    case .reset(let stream):
      guard resets.allows(at: now) else { throw .init(.enhanceYourCalm) }
      guard let index = index(of: stream) else {
        // Of an idle stream (RFC 9113 §6.4).
        guard isKnown(stream) else { throw .init(.protocolError) }
        return nil
      }
      streams.remove(at: index)
      return .reset(stream: stream)
    case .windowUpdate(let stream, let increment):
      return try windowUpdate(stream, increment)
    case .settings(let payload):
      try countControl()
      return .settings(try HTTP2PeerSettings(payload))
    case .settingsAcknowledged:
      try countControl()
      guard awaitsAcknowledgement else { throw .init(.protocolError) }
      awaitsAcknowledgement = false
      return nil
    case .ping(let data):
      try countControl()
      return .ping(data)
    case .pong(let data):
      try countControl()
      return .pong(data)
    case .priority, .goAway:
      try countControl()
      return nil
    case .unknown:
      try countUpdate()
      return nil
    }
  }

  private mutating func countControl() throws(HTTP2FrameReader.Fault) {
    guard controls.allows(at: now) else { throw .init(.enhanceYourCalm) }
  }

  /// Counts a WINDOW_UPDATE or unknown frame. Without a reason it is a control frame like others.
  private mutating func countUpdate() throws(HTTP2FrameReader.Fault) {
    if allowance > 0 { allowance &-= 1 } else { try countControl() }
  }

  /// Whether the client has opened a stream of this number, or a later one. Only odd numbers are its own (RFC 9113 §5.1.1).
  private func isKnown(_ stream: UInt32) -> Bool { stream <= lastStream && stream & 1 == 1 }

  /// Ends a stream because of what the client did with it. Too many of those end the connection: each costs the client less
  /// than the server.
  mutating func fault(
    _ stream: UInt32, _ code: HTTP2Code
  ) throws(HTTP2FrameReader.Fault) -> Event {
    glitches += 1
    guard faults.allows(at: now), glitches <= Self.glitches else { throw .init(.enhanceYourCalm) }
    resetLocally(stream)
    return .streamFault(stream: stream, code)
  }

  private mutating func windowUpdate(
    _ stream: UInt32, _ increment: Int
  ) throws(HTTP2FrameReader.Fault) -> Event? {
    try countUpdate()
    if stream == 0 {
      guard increment > 0 else { throw .init(.protocolError) }
      return .windowUpdate(stream: 0, increment)
    }
    guard index(of: stream) != nil else {
      guard isKnown(stream) else { throw .init(.protocolError) }
      return nil
    }
    return increment > 0 ? .windowUpdate(stream: stream, increment) : try fault(stream, .protocolError)
  }

  /// Checks a DATA frame when it begins (RFC 9113 §6.1, §6.9, §8.1.1). The event of a stream that it ends, if it does.
  private mutating func begin(
    _ data: HTTP2FrameReader.DataHead, on stream: UInt32
  ) throws(HTTP2FrameReader.Fault) -> Event? {
    if data.endsStream {
      emptyData = 0
    } else if data.length == 0 {
      emptyData += 1
      guard emptyData <= Self.emptyData else { throw .init(.enhanceYourCalm) }
    } else {
      emptyData = 0
    }
    guard data.counted <= window else { throw .init(.flowControlError) }
    window &-= data.counted
    guard let index = index(of: stream) else {
      if resetHere.contains(stream) { return nil }
      throw .init(isKnown(stream) ? .streamClosed : .protocolError)
    }
    guard !streams[index].remoteHasEnded else { return try fault(stream, .streamClosed) }
    guard data.counted <= streams[index].window else { return try fault(stream, .flowControlError) }
    streams[index].window &-= data.counted
    guard let missing = streams[index].missing else { return nil }
    guard data.endsStream ? data.length == missing : data.length <= missing else {
      return try fault(stream, .protocolError)
    }
    streams[index].missing = missing &- data.length
    return nil
  }

  // MARK: Field sections

  private mutating func headers(
    _ stream: UInt32, _ section: ByteBuffer, isEnd: Bool
  ) throws(HTTP2FrameReader.Fault) -> Event? {
    if stream > lastStream, stream & 1 == 1, isEnd {
      switch last.find(section, generation: fields.table.generation, limit: limits.headerBytes) {
      case .head(let head): return open(stream, head, missing: nil, isEnd: true)
      case .tooLarge: return try openTooLarge(stream, missing: nil, isEnd: true)
      case .malformed:
        lastStream = stream
        return try fault(stream, .protocolError)
      case nil: break
      }
    }
    let index = index(of: stream)
    let generation = fields.table.generation
    var builder = HTTP2HeadBuilder(limits: limits, areTrailers: index != nil)
    // Also of a stream that is refused or closed: the table changes for all that follow.
    do {
      try fields.read(section, into: &builder)
    } catch {
      throw .init(.compressionError)
    }
    if let index { return try trailers(index, builder, isEnd: isEnd) }
    guard stream & 1 == 1 else { throw .init(.protocolError) }
    guard stream > lastStream else {
      guard resetHere.contains(stream) else { throw .init(.protocolError) }
      // Nothing answers it, but it was decoded.
      try countControl()
      return nil
    }
    let missing = builder.contentLength
    guard builder.isValid, !isEnd || missing ?? 0 == 0 else {
      lastStream = stream
      return try fault(stream, .protocolError)
    }
    guard !builder.isTooLarge else { return try openTooLarge(stream, missing: missing, isEnd: isEnd) }
    let head = builder.head(isComplete: isEnd)
    if isEnd, generation == fields.table.generation {
      last.keep(section, head, builder, generation: generation)
    }
    return open(stream, head, missing: missing, isEnd: isEnd)
  }

  /// Fields that are too large cost more to read than to send: so many requests with them end the connection.
  private mutating func openTooLarge(
    _ stream: UInt32, missing: Int?, isEnd: Bool
  ) throws(HTTP2FrameReader.Fault) -> Event {
    guard faults.allows(at: now) else { throw .init(.enhanceYourCalm) }
    return open(stream, nil, missing: missing, isEnd: isEnd)
  }

  private mutating func open(_ stream: UInt32, _ head: RequestHead?, missing: Int?, isEnd: Bool) -> Event {
    lastStream = stream
    allowance &+= Self.allowedPerRequest
    guard streams.count < openStreams else {
      resetLocally(stream)
      return .surplus(stream: stream)
    }
    streams.append(Stream(id: stream, remoteHasEnded: isEnd, missing: missing))
    return .request(stream: stream, head, isEnd: isEnd)
  }

  private mutating func trailers(
    _ index: Int, _ builder: HTTP2HeadBuilder, isEnd: Bool
  ) throws(HTTP2FrameReader.Fault) -> Event? {
    let stream = streams[index].id
    guard !streams[index].remoteHasEnded, isEnd, builder.isValid, streams[index].missing ?? 0 == 0 else {
      return try fault(stream, .protocolError)
    }
    streams[index].remoteHasEnded = true
    _ = closeIfEnded(index)
    return .trailers(stream: stream)
  }
}

/// What a client asks of the frames that it gets (RFC 9113 §6.5.2).
struct HTTP2PeerSettings {
  /// The initial window of streams; nil when it stays. The last value counts.
  private(set) var window: Int?
  /// It names a size of the table for fields, so that the next section must confirm one (RFC 7541 §4.2).
  private(set) var namesTable = false

  init(_ payload: ByteBuffer) throws(HTTP2FrameReader.Fault) {
    var payload = payload
    while let (name, value) = payload.readMultipleIntegers(as: (UInt16, UInt32).self) {
      switch name {
      case 1: namesTable = true
      case 2 where value > 1: throw .init(.protocolError)
      case 4:
        guard value <= UInt32(Int32.max) else { throw .init(.flowControlError) }
        window = Int(value)
      case 5 where !(16_384...16_777_215 ~= value): throw .init(.protocolError)
      default: break
      }
    }
  }
}

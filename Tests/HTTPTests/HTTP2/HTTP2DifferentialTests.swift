@testable import HTTP
import NIOCore
import NIOEmbedded
import NIOHPACK
import NIOHTTP2
import Support
import Testing

/// weir's receiver held against NIO's HTTP/2: for the same frames, both go on, end the same stream, or end the connection.
/// `HTTP2WireTests` has the windows of the client, which the sender keeps.
///
/// | where they differ | NIO | here | why |
/// |---|---|---|---|
/// | fields on a stream that the server has reset | ends the connection | ignored | RFC 9113 §5.1: they may have crossed |
/// | empty DATA frames with other DATA between them | count together | do not count | those carry something |
/// | a window widened by nothing, on a stream that is answered | ignored | ends the stream | RFC 9113 §6.9 |
/// | GOAWAY that names a stream of the client, or a later one than before | ends the connection | counts as any | nothing is pushed |
/// | frames of a fixed length that are longer | read as far as known | end the connection | RFC 9113 §6.3, §6.4, §6.9 |
/// | control characters in values, other than CR, LF and NUL | pass | end the stream | as in HTTP/1.1 |
/// | blanks at the ends of values | pass | end the stream | RFC 9113 §8.2.1 |
/// | Content-Length that is empty, has a sign, or is a list | passes | ends the stream | as in HTTP/1.1 |
/// | ALTSVC and ORIGIN | are read | ignored | they mean nothing from a client |
/// | a path without a slash, except for "*" | passes | ends the stream | RFC 9113 §8.3.1 |
/// | many requests whose fields are too large | pass | end the connection | they cost more to read than to send |
/// | many WINDOW_UPDATE, GOAWAY and unknown frames without a reason | pass | end the connection | they cost, and mean nothing |
@Suite struct HTTP2DifferentialTests {
  private static let rounds = environmentNumber("WEIR_DIFFERENTIAL") ?? (isLong ? 400 : 250)

  /// NIO's server, which answers and resets streams as it is told. Looked at are the resets that it makes by itself, and the end of
  /// the connection.
  private final class Judge {
    private let channel = EmbeddedChannel()
    /// Bytes of a frame that is not whole yet.
    private var rest: [UInt8] = []
    /// Streams that it was told to reset.
    private var told: Set<UInt32> = []
    private(set) var resets: [UInt32] = []
    private(set) var code: UInt8?

    init() throws {
      var configuration = NIOHTTP2Handler.ConnectionConfiguration()
      configuration.initialSettings = [
        HTTP2Setting(parameter: .maxConcurrentStreams, value: 100),
        HTTP2Setting(parameter: .maxHeaderListSize, value: 65_536),
      ]
      configuration.maximumRecentlyResetStreams = HTTP2Receiver.resetStreams
      try channel.pipeline.syncOperations.addHandler(
        NIOHTTP2Handler(mode: .server, connectionConfiguration: configuration))
      try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
    }

    func receive(_ bytes: [UInt8]) throws {
      // It throws what it has answered.
      _ = try? channel.writeInbound(ByteBuffer(bytes: bytes))
      try look()
    }

    private func look() throws {
      while let part = try channel.readOutbound(as: ByteBuffer.self) { rest += part.readableBytesView }
      for frame in HTTP2Bytes.frames(rest) {
        rest.removeFirst(9 + frame.payload.count)
        if frame.type == 3, !told.contains(frame.stream) { resets.append(frame.stream) }
        if frame.type == 7, code == nil { code = frame.payload[7] }
      }
    }

    private func send(_ payload: HTTP2Frame.FramePayload, on stream: UInt32) throws {
      try channel.writeOutbound(HTTP2Frame(streamID: HTTP2StreamID(Int(stream)), payload: payload))
      try look()
    }

    func answer(_ stream: UInt32, hasBody: Bool) throws {
      try send(.headers(.init(headers: HPACKHeaders([(":status", "200")]), endStream: !hasBody)), on: stream)
      // Of no bytes: it may be the answer to HEAD.
      if hasBody { try send(.data(.init(data: .byteBuffer(ByteBuffer()), endStream: true)), on: stream) }
    }

    func reset(_ stream: UInt32) throws {
      told.insert(stream)
      try send(.rstStream(.cancel), on: stream)
    }

    func reopenWindow(by count: Int) throws { try send(.windowUpdate(windowSizeIncrement: count), on: 0) }

    deinit { _ = try? channel.finish(acceptAlreadyClosed: true) }
  }

  /// Both, which get the same frames and give the same answers.
  private struct Pair {
    private let judge: Judge
    private(set) var reading = HTTP2Reading()
    /// What came so far: frames, and the streams that were answered or reset.
    private var story: [[UInt8]] = []
    /// An empty DATA frame came after the last fields and the last end of a stream.
    private var hasEmptyData = false

    init() throws { judge = try Judge() }

    /// The client sends a frame, or several. False when both end the connection.
    mutating func receive(_ bytes: [UInt8], _ name: String = "") throws -> Bool {
      story.append(bytes)
      if bytes[3] == 1 || bytes[3] == 0 && bytes[4] & 1 == 1 { hasEmptyData = false }
      if Self.isEmptyData(bytes) { hasEmptyData = true }
      try judge.receive(bytes)
      reading.receive(bytes)
      // Which of two codes fits is not always said.
      let (fault, code) = (reading.fault, judge.code)
      try #require((fault == nil) == (code == nil), "\(name): \(story), \(reading.events); NIO says \(code ?? 0)")
      guard fault == nil else { return false }
      let (faulty, resets) = (reading.faultyStreams, judge.resets)
      try #require(faulty == resets, "\(name): \(story), \(reading.events)")
      return true
    }

    mutating func answer(_ stream: UInt32, hasBody: Bool = false) throws {
      story.append(Array("answer \(stream)".utf8))
      try judge.answer(stream, hasBody: hasBody)
      reading.answer(stream)
    }

    mutating func reset(_ stream: UInt32) throws {
      story.append(Array("reset \(stream)".utf8))
      try judge.reset(stream)
      reading.reset(stream)
    }

    mutating func reopenWindow() throws {
      let count = reading.reopenWindow()
      if count > 0 { try judge.reopenWindow(by: count) }
    }

    /// Whether they need not agree on a frame, as the table above says.
    func mayDiffer(on frame: [UInt8]) -> Bool {
      let stream = UInt32(frame[8])
      switch frame[3] {
      case 0: return Self.isEmptyData(frame) && hasEmptyData
      case 1: return reading.resetStreams.contains(stream)
      case 8: return frame.suffix(4) == [0, 0, 0, 0] && reading.answeredStreams.contains(stream)
      default: return false
      }
    }

    private static func isEmptyData(_ frame: [UInt8]) -> Bool {
      frame[3] == 0 && frame[4] & 1 == 0
        && (frame.count == 9 || frame[4] & 8 != 0 && frame.count == 10 + Int(frame[9]))
    }
  }

  @Test(arguments: 0..<8) func `the same frames have the same end`(seed: UInt64) throws {
    var ends: [String: Int] = [:]
    var lengths: [Int] = []
    var maker = HTTP2FrameMaker(seed: seed)
    for round in 0..<Self.rounds {
      maker.begin()
      var pair = try Pair()
      var goesOn = try pair.receive(HTTP2Bytes.preface + HTTP2Bytes.acknowledgement)
      let length = 1 + maker.pick(60)
      var count = 0
      while goesOn, count < length {
        let frame = maker.frame(open: pair.reading.openStreams)
        if pair.mayDiffer(on: frame) { break }
        goesOn = try pair.receive(frame, "round \(round)")
        count += 1
        if goesOn { try serve(&pair, &maker) }
      }
      lengths.append(count)
      let reading = pair.reading
      let end = reading.fault.map { "\($0)" } ?? (reading.faultyStreams.isEmpty ? "good" : "faulty streams")
      ends[end, default: 0] += 1
    }
    for end in ["good", "faulty streams", "protocolError", "frameSizeError", "compressionError", "streamClosed"] {
      #expect(ends[end, default: 0] > 0, "\(end) is among \(ends)")
    }
    #expect(lengths.contains { $0 > 50 }, "some connections are long: \(lengths.max() ?? 0)")
  }

  /// What the server does between two frames of the client: mostly nothing.
  private func serve(_ pair: inout Pair, _ maker: inout HTTP2FrameMaker) throws {
    let (open, unanswered) = (pair.reading.openStreams, pair.reading.unansweredStreams)
    switch maker.pick(12) {
    case 0, 1:
      guard !unanswered.isEmpty else { return }
      try pair.answer(unanswered[maker.pick(unanswered.count)], hasBody: maker.pick(2) == 0)
    case 2 where !open.isEmpty: try pair.reset(open[maker.pick(open.count)])
    case 3: try pair.reopenWindow()
    default: break
    }
  }

  @Test func `a stream that is answered takes the rest of its request, and is then closed`() throws {
    for hasBody in [false, true] {
      var pair = try Pair()
      let data = http2Frame(0, stream: 1, [7])
      let open = HTTP2Bytes.preface + HTTP2Bytes.request("/", stream: 1, isEnd: false)
      #expect(try pair.receive(open) && pair.receive(data))
      try pair.answer(1, hasBody: hasBody)
      #expect(try pair.receive(data) && pair.receive(http2Frame(8, stream: 1, [0, 0, 0, 1])))
      #expect(try pair.receive(http2Frame(0, flags: 1, stream: 1, [7])))
      #expect(pair.reading.openStreams.isEmpty)
      // What may have crossed is ignored, but no more of the body.
      #expect(try pair.receive(http2Frame(8, stream: 1, [0, 0, 0, 1])))
      #expect(try pair.receive(http2Frame(3, stream: 1, [0, 0, 0, 8])))
      #expect(try !pair.receive(data))
      #expect(pair.reading.fault == .streamClosed)
    }
  }

  @Test func `a client may reset a stream that is answered, and open others after its goodbye`() throws {
    var pair = try Pair()
    #expect(try pair.receive(HTTP2Bytes.preface + HTTP2Bytes.request("/", stream: 1, isEnd: false)))
    try pair.answer(1)
    #expect(try pair.receive(http2Frame(3, stream: 1, [0, 0, 0, 8])))
    #expect(try pair.receive(http2Frame(7, [UInt8](repeating: 0, count: 8))))
    #expect(try pair.receive(HTTP2Bytes.request("/", stream: 3)))
    #expect(pair.reading.openStreams == [3])
    try pair.reset(3)
    // Late frames of a stream that the server has reset.
    #expect(try pair.receive(http2Frame(0, flags: 1, stream: 3, [7])))
    #expect(try pair.receive(http2Frame(8, stream: 3, [0, 0, 0, 0]) + http2Frame(3, stream: 3, [0, 0, 0, 8])))
    #expect(pair.reading.faultyStreams.isEmpty)
  }

  /// However they are cut.
  @Test(arguments: 0..<4) func `pieces of any size mean the same as the whole`(seed: UInt64) {
    var maker = HTTP2FrameMaker(seed: seed &+ 1000)
    for _ in 0..<Self.rounds / 4 {
      maker.begin()
      let frames = (0..<12).map { _ in maker.frame() }
      let bytes = Array((HTTP2Bytes.preface + frames.joined()))
      let whole = HTTP2Reading([bytes])
      #expect(HTTP2Reading(bytes.map { [$0] }) == whole)
      let step = 1 + maker.pick(60)
      let cut = HTTP2Reading(
        stride(from: 0, to: bytes.count, by: step).map { Array(bytes[$0..<min($0 + step, bytes.count)]) })
      #expect(cut == whole)
    }
  }

  // MARK: Floods

  /// How many of the frames both take before they end the connection, and the code.
  private func expectFlood(
    _ name: String, _ code: HTTP2Code, before: [UInt8] = [], _ frame: (Int) -> [UInt8]
  ) throws {
    let judge = try Judge()
    var reading = HTTP2Reading()
    let begun = HTTP2Bytes.preface + HTTP2Bytes.acknowledgement + before
    try judge.receive(begun)
    reading.receive(begun)
    try #require(reading.fault == nil && judge.code == nil, "\(name)")
    for number in 0..<1000 {
      try judge.receive(frame(number))
      reading.receive(frame(number))
      try #require((reading.fault == nil) == (judge.code == nil), "\(name), frame \(number)")
      if let fault = reading.fault {
        #expect(fault == code && UInt32(judge.code ?? 0) == code.rawValue, "\(name)")
        #expect(number <= 200, "\(name)")
        return
      }
    }
    Issue.record("\(name) has no end")
  }

  @Test func `floods end where NIO ends them`() throws {
    try expectFlood("pings", .enhanceYourCalm) { _ in http2Frame(6, [UInt8](0..<8)) }
    try expectFlood("answers to no ping", .enhanceYourCalm) { _ in http2Frame(6, flags: 1, [UInt8](0..<8)) }
    try expectFlood("settings", .enhanceYourCalm) { _ in http2Frame(4, [0, 4, 0, 0, 0, 1]) }
    try expectFlood("priorities", .enhanceYourCalm) { _ in http2Frame(2, stream: 1, [0, 0, 0, 0, 5]) }
    try expectFlood("rapid resets", .enhanceYourCalm) {
      HTTP2Bytes.request("/", stream: UInt32(2 * $0 + 1)) + http2Frame(3, stream: UInt32(2 * $0 + 1), [0, 0, 0, 8])
    }
    try expectFlood("resets that the server is made to send", .enhanceYourCalm) {
      HTTP2Bytes.request("/", stream: UInt32(2 * $0 + 1)) + http2Frame(8, stream: UInt32(2 * $0 + 1), [0, 0, 0, 0])
    }
    let open = HTTP2Bytes.request("/", stream: 1, isEnd: false)
    try expectFlood("empty data", .enhanceYourCalm, before: open) { _ in http2Frame(0, stream: 1) }
    try expectFlood("padding alone", .enhanceYourCalm, before: open) { _ in http2Frame(0, flags: 8, stream: 1, [1, 0]) }
    try expectFlood("more than the window", .flowControlError, before: open) { _ in
      http2Frame(0, stream: 1, [UInt8](repeating: 0, count: 10_000))
    }
    let begun = http2Frame(1, flags: 1, stream: 1, [0x82])
    try expectFlood("continuations", .enhanceYourCalm, before: begun) { _ in http2Frame(9, stream: 1, [0x84]) }
    try expectFlood("a section without end", .protocolError, before: begun) { _ in
      http2Frame(9, stream: 1, [UInt8](repeating: 0x84, count: 16_384))
    }
  }

  /// NIO does not count these.
  @Test(arguments: [
    http2Frame(7, [UInt8](repeating: 0, count: 8)), http2Frame(0xB, [1]), http2Frame(8, [0, 0, 0, 1]),
    http2Frame(8, stream: 1, [0, 0, 0, 1]), http2Frame(8, stream: 3, [0, 0, 0, 1]),
  ])
  func `floods of what nothing asks for end the connection`(frame: [UInt8]) {
    var reading = HTTP2Reading()
    reading.receive(HTTP2Bytes.preface)
    // The second of them is closed.
    reading.receive(HTTP2Bytes.request("/", stream: 1) + HTTP2Bytes.request("/", stream: 3))
    reading.receive(http2Frame(3, stream: 3, [0, 0, 0, 8]))
    // The settings were one.
    for _ in 0..<HTTP2Receiver.rate - 1 { reading.receive(frame) }
    #expect(reading.fault == nil)
    // Four for each request may come beside.
    for _ in 0..<9 { reading.receive(frame) }
    #expect(reading.fault == .enhanceYourCalm)
  }

  /// Browsers do: the window of the stream, its priority (RFC 9218), and a frame of no meaning.
  @Test func `a client may send a few small frames with each request`() {
    var reading = HTTP2Reading()
    reading.receive(HTTP2Bytes.preface)
    for number in 0..<500 {
      let stream = UInt32(2 * number + 1)
      reading.receive(HTTP2Bytes.request("/", stream: stream, isEnd: false))
      reading.receive(http2Frame(8, stream: stream, [0, 0, 1, 0]) + http2Frame(16, [0, 0, 0, 1, 0x75]))
      reading.receive(http2Frame(0xB + 31, stream: stream) + http2Frame(8, [0, 0, 0, 1]))
      reading.receive(http2Frame(0, flags: 1, stream: stream))
      reading.answer(stream)
    }
    #expect(reading.fault == nil)
  }

  /// Of a rate, old events are forgotten.
  @Test func `a client that pings slowly may do so for ever`() {
    var reading = HTTP2Reading(ticks: 10)
    reading.receive(HTTP2Bytes.preface)
    for tick in 0..<100 {
      for _ in 0..<17 { reading.receive(http2Frame(6, [UInt8](0..<8)), at: tick) }
    }
    #expect(reading.fault == nil)
    for _ in 0..<60 { reading.receive(http2Frame(6, [UInt8](0..<8)), at: 100) }
    #expect(reading.fault == .enhanceYourCalm)
  }

  @Test func `what a connection holds is bounded`() {
    var reading = HTTP2Reading()
    reading.receive(HTTP2Bytes.preface)
    // Of a frame that means nothing.
    reading.receive(http2Frame(77, stream: 1, [UInt8](repeating: 1, count: 16_384)).dropLast())
    #expect(reading.heldBytes == 0)
    reading.receive([1])
    reading.receive(http2Frame(1, stream: 1, [UInt8](repeating: 0x84, count: 16_384)))
    for _ in 0..<2 { reading.receive(http2Frame(9, stream: 1, [UInt8](repeating: 0x84, count: 16_384))) }
    reading.receive(http2Frame(9, stream: 1, [UInt8](repeating: 0x84, count: 16_383)).dropLast())
    #expect(reading.fault == nil && (64_000...66_000).contains(reading.heldBytes))
  }

  @Test(arguments: [("a b", false), ("", false), (" a", true), ("a\t", true), (" ", true)])
  func `a value has no blanks at its ends`(value: String, isFault: Bool) {
    var reading = HTTP2Reading()
    let fields: [UInt8] = [0x82, 0x87, 0x84, 0x01, 1, 0x68, 0x00, 1, 0x78, UInt8(value.utf8.count)] + Array(value.utf8)
    reading.receive(HTTP2Bytes.preface + http2Frame(1, flags: 5, stream: 1, fields))
    #expect(reading.fault == nil && reading.faultyStreams == (isFault ? [1] : []))
  }

  @Test func `frames that are late for a stream that was reset are ignored, and count for the window`() {
    var reading = HTTP2Reading()
    reading.receive(HTTP2Bytes.preface + HTTP2Bytes.request("/", stream: 1, isEnd: false))
    reading.receive(http2Frame(8, stream: 1, [0, 0, 0, 0]))
    #expect(reading.faultyStreams == [1])
    reading.receive(http2Frame(0, stream: 1, [UInt8](repeating: 0, count: 16_000)))
    reading.receive(http2Frame(1, flags: 5, stream: 1, [0x00, 1, 0x78, 1, 0x79]))
    reading.receive(http2Frame(3, stream: 1, [0, 0, 0, 8]) + http2Frame(8, stream: 1, [0, 0, 0, 1]))
    #expect(reading.fault == nil && reading.faultyStreams == [1])
    for _ in 0..<4 { reading.receive(http2Frame(0, stream: 1, [UInt8](repeating: 0, count: 16_000))) }
    #expect(reading.fault == .flowControlError)
  }
}

/// Makes up frames of a client, most of them in order. The same for the same seed.
struct HTTP2FrameMaker {
  private var generator: RequestMaker.Generator
  private var encoder = HPACKEncoder(allocator: ByteBufferAllocator())
  private var next: UInt32 = 1
  /// Whether the client also sends what none may send. Such a connection ends soon.
  private var isWild = true
  private var open: [UInt32] = []

  init(seed: UInt64) { generator = .init(state: seed &* 0x1234_5678_9ABC_DEF1 &+ 1) }

  /// Begins a connection.
  mutating func begin() {
    encoder = HPACKEncoder(allocator: ByteBufferAllocator())
    next = 1
    isWild = pick(2) == 0
  }

  mutating func pick(_ count: Int) -> Int { Int(generator.next() % UInt64(count)) }

  private mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
  }

  /// One that is open, mostly. Frames for others are late, or wrong.
  private mutating func stream() -> UInt32 {
    if isWild {
      switch pick(40) {
      case 0: return 0
      case 1: return next
      case 2: return 2
      default: break
      }
    }
    guard open.isEmpty || pick(isWild ? 2 : 40) == 0 else { return open[pick(open.count)] }
    return next > 1 ? UInt32(1 + 2 * pick(Int(next / 2))) : 1
  }

  /// `open` are the streams that are not closed.
  mutating func frame(open: [UInt32] = []) -> [UInt8] {
    self.open = open
    guard isWild || !open.isEmpty else { return request() }
    switch pick(28) {
    case 0..<9: return request()
    case 9..<13: return data()
    case 13: return http2Frame(2, stream: stream(), bytes(5))
    case 14: return http2Frame(3, stream: stream(), bytes(4))
    case 15: return settings()
    case 16: return http2Frame(6, flags: UInt8(pick(2)), bytes(8))
    case 17, 18:
      let increment: [UInt8] = [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 255, 255], [0, 1, 0, 0]][pick(4)]
      let isOfConnection = pick(3) == 0 && (isWild || increment != [0, 0, 0, 0])
      return http2Frame(8, stream: isOfConnection ? 0 : stream(), increment)
    case 19: return http2Frame(20 + UInt8(pick(200)), flags: 0xFF, stream: stream(), bytes(pick(20)))
    case 20: return isWild && pick(4) == 0 ? http2Frame(4, flags: 1) : data()
    case 21, 23: return isWild ? odd() : data()
    case 22: return http2Frame(7, [0, 0, 0, 0] + bytes(4 + pick(9)))
    default: return trailers()
    }
  }

  /// Something that no client may send.
  private mutating func odd() -> [UInt8] {
    switch pick(10) {
    case 0: http2Frame(9, flags: 4, stream: stream(), [0x84])
    case 1: http2Frame(5, flags: 4, stream: stream(), [0, 0, 0, 2, 0x84])
    case 2: http2Frame(0, stream: stream(), bytes(16_385))
    case 3: http2Frame(6, bytes(7))
    case 4: http2Frame(4, bytes(7))
    case 5, 9: http2Frame(1, flags: 5, stream: stream(), bytes(30))
    case 6: http2Frame(7, bytes(7))
    case 7: http2Frame(8, bytes(3))
    default: http2Frame(3, stream: stream(), bytes(3))
    }
  }

  private mutating func settings() -> [UInt8] {
    let values: [[UInt8]] = [
      [0, 4, 0, 0, 16, 0], [0, 4, 0x80, 0, 0, 0], [0, 2, 0, 0, 0, 1], [0, 2, 0, 0, 0, 2], [0, 5, 0, 0, 0x40, 0],
      [0, 5, 0, 0, 0x3F, 255], [0, 1, 0, 0, 0, 0], [0, 99, 1, 2, 3, 4],
    ]
    return http2Frame(4, (0..<pick(3)).flatMap { _ in values[pick(isWild && pick(3) == 0 ? values.count : 1)] })
  }

  private mutating func data() -> [UInt8] {
    let flags: UInt8 = [0, 1, 8, 9][pick(4)]
    var payload = bytes(pick(3) == 0 ? pick(16_000) : pick(30))
    if flags & 8 != 0 { payload = [UInt8(pick(isWild && pick(8) == 0 ? 256 : min(payload.count + 1, 200)))] + payload }
    return http2Frame(0, flags: flags, stream: stream(), payload)
  }

  private mutating func section(_ fields: [(String, String)]) -> [UInt8] {
    var buffer = ByteBuffer()
    do {
      try encoder.encode(headers: HPACKHeaders(fields), to: &buffer)
    } catch {
      return []
    }
    return Array(buffer.readableBytesView)
  }

  private mutating func trailers() -> [UInt8] {
    let fields = [("x-sum", "1"), ("x-sum", "2"), (":path", "/"), ("connection", "close")][pick(pick(3) == 0 ? 4 : 2)]
    return http2Frame(1, flags: pick(4) == 0 ? 4 : 5, stream: stream(), section([fields]))
  }

  private mutating func request() -> [UInt8] {
    var fields = [
      (":method", ["GET", "POST", "HEAD", "BREW"][pick(4)]), (":scheme", "https"),
      (":path", "/live/cam/\(pick(20)).m4s"), (":authority", "localhost"),
    ]
    if pick(2) == 0 { fields.append(("user-agent", "player \(pick(3))")) }
    if pick(6) == 0 { fields.append(("content-length", "\([0, 5, 20][pick(3)])")) }
    if pick(6) == 0 { spoil(&fields) }
    if !isWild || pick(10) > 0 || next == 1 { next += 2 }
    var flags: UInt8 = pick(3) == 0 ? 0 : 1
    var payload = section(fields)
    if pick(5) == 0 {
      flags |= 0x20
      payload = [0, 0, 0, UInt8(pick(8)), 1] + payload
    }
    if pick(5) == 0 {
      flags |= 8
      let padding = pick(20)
      payload = [UInt8(padding)] + payload + [UInt8](repeating: 0, count: padding)
    } else if pick(5) == 0, payload.count > 6 {
      // In two frames.
      let cut = 5 + pick(payload.count - 5)
      let last = isWild && pick(20) == 0 ? next : next - 2
      return http2Frame(1, flags: flags, stream: next - 2, Array(payload[..<cut]))
        + http2Frame(9, flags: 4, stream: last, Array(payload[cut...]))
    }
    return http2Frame(1, flags: flags | 4, stream: next - 2, payload)
  }

  /// Fields that no request has.
  private mutating func spoil(_ fields: inout [(String, String)]) {
    switch pick(16) {
    case 0: fields.remove(at: pick(3))
    case 1: fields.append(("X-Upper", "1"))
    case 2: fields.append(("connection", "close"))
    case 3: fields.append(("te", ["trailers", "gzip"][pick(2)]))
    case 4: fields.append((":path", "/"))
    case 5: fields.insert((":path", "/other"), at: 0)
    case 6: fields.append((":status", "200"))
    case 7: fields.insert((":unknown", "x"), at: pick(3))
    case 8: fields[2].1 = ""
    case 9: fields[2].1 = "/a b"
    case 10: fields.append(("content-length", ["x", "5", "7"][pick(3)]))
    case 11: fields[0].1 = "CONNECT"
    case 12: fields.append(("x", ["a\r\nb", "a\nb", "a\rb", "a b", "\u{e9}"][pick(5)]))
    case 13: fields.append(("x y", "1"))
    case 14: fields = [(":method", "CONNECT"), (":authority", "localhost")]
    default: fields.append(("transfer-encoding", "chunked"))
    }
  }
}

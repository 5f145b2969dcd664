@testable import HTTP
import NIOCore

/// What weir's receiver makes of the bytes of an HTTP/2 connection. Nothing is sent back but the resets of faulty streams.
struct HTTP2Reading: Equatable {
  /// Each event as a line; the parts of a body are one.
  private(set) var events: [String] = []
  /// The bodies, in the order of their lines.
  private var bodies: [[UInt8]] = []
  /// The code that ends the connection.
  private(set) var fault: HTTP2Code?
  /// The streams that a fault of the client ended, in order.
  private(set) var faultyStreams: [UInt32] = []
  /// The most bytes that waited for the rest of their frame.
  private(set) var heldBytes = 0

  private var receiver: HTTP2Receiver
  private var body: (stream: UInt32, bytes: [UInt8])?

  init(limits: HTTPLimits = HTTPLimits(), ticks: Int = 30) {
    receiver = HTTP2Receiver(limits: limits, ticks: ticks)
  }

  /// The reading of bytes that come in such pieces.
  init(_ pieces: [[UInt8]]) {
    self.init()
    for piece in pieces { receive(piece) }
    finish()
  }

  static func == (one: HTTP2Reading, other: HTTP2Reading) -> Bool {
    one.events == other.events && one.bodies == other.bodies && one.fault == other.fault
  }

  mutating func receive(_ bytes: [UInt8], at tick: Int = 0) {
    guard fault == nil else { return }
    receiver.now = tick
    receiver.receive(ByteBuffer(bytes: bytes))
    do throws(HTTP2FrameReader.Fault) {
      while let event = try receiver.next() { take(event) }
      receiver.settle()
    } catch {
      fault = error.code
    }
    heldBytes = max(heldBytes, receiver.heldBytes)
  }

  // MARK: What the server does

  /// Streams that a fault of the client or the server has reset.
  private(set) var resetStreams: Set<UInt32> = []

  /// Those that are not closed, and those of them that are answered and not.
  var openStreams: [UInt32] { receiver.streams.map(\.id) }
  var answeredStreams: [UInt32] { receiver.streams.filter(\.localHasEnded).map(\.id) }
  var unansweredStreams: [UInt32] { receiver.streams.filter { !$0.localHasEnded }.map(\.id) }

  /// The response of a stream is sent as a whole.
  mutating func answer(_ stream: UInt32) { _ = receiver.endLocally(stream) }

  mutating func reset(_ stream: UInt32) {
    receiver.resetLocally(stream)
    resetStreams.insert(stream)
  }

  /// The client may send again what it may at first, on the connection. By how much its window grows.
  mutating func reopenWindow() -> Int {
    defer { receiver.window = HTTP2Receiver.window }
    return HTTP2Receiver.window - receiver.window
  }

  mutating func finish() {
    guard let body = body.take() else { return }
    events.append("data \(body.stream) \(body.bytes.count)")
    bodies.append(body.bytes)
  }

  private mutating func take(_ event: HTTP2Receiver.Event) {
    if case .data(let stream, let bytes, let isEnd) = event {
      if body?.stream != stream { finish() }
      body = (stream, (body?.bytes ?? []) + Array(bytes.readableBytesView))
      if isEnd {
        finish()
        events.append("end \(stream)")
      }
      return
    }
    finish()
    switch event {
    case .request(let stream, let head, let isEnd): events.append("request \(stream) \(isEnd) \(Self.text(head))")
    case .streamFault(let stream, let code):
      faultyStreams.append(stream)
      resetStreams.insert(stream)
      events.append("fault \(stream) \(code)")
    default: events.append("\(event)")
    }
  }

  static func text(_ head: RequestHead?) -> String {
    guard let head else { return "too large" }
    let fields = head.fields.all.map { "\($0.name): \($0.value)" }.joined(separator: ", ")
    return """
      \(head.method) \(String(buffer: head.target)) token \(head.token.map { String(buffer: $0) } ?? "-") hosts \(head.hosts) \
      body \(head.body) \(head.version) \(head.expectation) gzip \(head.fields.acceptsGzip) \
      conditional \(head.fields.areConditional) \(fields)
      """
  }
}

import NIOCore
import NIOHPACK
import NIOHTTP2
import NIOPosix
import NIOSSL
import ServerSupport
import Synchronization
import Testing

/// An HTTP/2 client that sends the frames it is told to send, keeps those that come back, and opens no window by itself.
final class HTTP2TestClient: Sendable {
  /// What came on one stream.
  struct Stream {
    var fields: [(name: String, value: String)] = []
    var body: [UInt8] = []
    var hasEnded = false
    /// The code of a reset.
    var reset: HTTP2ErrorCode?

    var status: Int? { self[":status"].flatMap { Int($0) } }
    var text: String { String(decoding: body, as: UTF8.self) }
    var isOver: Bool { hasEnded || reset != nil }
    subscript(_ name: String) -> String? { fields.first { $0.name == name }?.value }
  }

  struct State {
    var streams: [HTTP2StreamID: Stream] = [:]
    /// The code and the last stream of each GOAWAY.
    var goAways: [(code: HTTP2ErrorCode, last: HTTP2StreamID)] = []
    var isClosed = false
  }

  private final class Collector: ChannelInboundHandler {
    typealias InboundIn = HTTP2Frame
    let change: @Sendable (_ change: (inout State) -> Void) -> Void
    init(change: @escaping @Sendable (_ change: (inout State) -> Void) -> Void) { self.change = change }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let frame = Self.unwrapInboundIn(data)
      change { state in
        switch frame.payload {
        case .headers(let headers):
          for (name, value, _) in headers.headers {
            state.streams[frame.streamID, default: Stream()].fields.append((name, value))
          }
          state.streams[frame.streamID]?.hasEnded = headers.endStream
        case .data(let data):
          if case .byteBuffer(let bytes) = data.data {
            state.streams[frame.streamID]?.body.append(contentsOf: bytes.readableBytesView)
          }
          state.streams[frame.streamID]?.hasEnded = data.endStream
        case .rstStream(let code): state.streams[frame.streamID, default: Stream()].reset = code
        case .goAway(let last, let code, _): state.goAways.append((code, last))
        default: break
        }
      }
    }
    func channelInactive(context: ChannelHandlerContext) { change { $0.isClosed = true } }
    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      if !(error is any NIOHTTP2Error) { context.close(promise: nil) }
    }
  }

  private let state = Mutex(State())
  private let channelBox = Mutex<(any Channel)?>(nil)
  private let nextStream = Mutex(1)

  /// `window` is what the server may send on each stream before it is told more.
  static func connect(to address: SocketAddress, tls: NIOSSLContext, window: Int = 65535) async throws
    -> HTTP2TestClient
  {
    let client = HTTP2TestClient()
    let channel = try await ClientBootstrap(group: NIOSingletons.posixEventLoopGroup)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let operations = channel.pipeline.syncOperations
          try operations.addHandler(NIOSSLClientHandler(context: tls, serverHostname: nil))
          try operations.addHandler(
            NIOHTTP2Handler(
              mode: .client, initialSettings: [HTTP2Setting(parameter: .initialWindowSize, value: window)],
              headerBlockValidation: .disabled, contentLengthValidation: .disabled))
          try operations.addHandler(Collector { change in client.state.withLock { change(&$0) } })
        }
      }
      .connect(to: address).get()
    client.channelBox.withLock { $0 = channel }
    return client
  }

  private var channel: any Channel {
    get throws { try #require(channelBox.withLock { $0 }) }
  }

  func send(_ payload: HTTP2Frame.FramePayload, on stream: HTTP2StreamID = .rootStream) async throws {
    try await channel.writeAndFlush(HTTP2Frame(streamID: stream, payload: payload)).get()
  }

  /// Begins a request and returns its stream.
  func request(
    _ path: String, method: String = "GET", fields: [(String, String)] = [], authority: String = "localhost",
    isEnd: Bool = true
  ) async throws -> HTTP2StreamID {
    let id = HTTP2StreamID(
      nextStream.withLock { next in
        defer { next += 2 }; return next
      })
    let headers = HPACKHeaders(
      [(":method", method), (":scheme", "https"), (":path", path), (":authority", authority)] + fields)
    try await send(.headers(.init(headers: headers, endStream: isEnd)), on: id)
    return id
  }

  /// Opens the connection's window and, if one is named, that of a stream.
  func open(_ stream: HTTP2StreamID? = nil, by count: Int = 1 << 24) async throws {
    try await send(.windowUpdate(windowSizeIncrement: count))
    if let stream { try await send(.windowUpdate(windowSizeIncrement: count), on: stream) }
  }

  func reset(_ stream: HTTP2StreamID) async throws { try await send(.rstStream(.cancel), on: stream) }

  func close() async { try? await channelBox.withLock { $0 }?.close().get() }

  var now: State { state.withLock { $0 } }

  subscript(_ stream: HTTP2StreamID) -> Stream { state.withLock { $0.streams[stream] ?? Stream() } }

  /// Waits until `condition` holds for what has come so far.
  func wait(_ what: String, for limit: Duration = .seconds(30), until condition: (State) -> Bool) async throws {
    let deadline = ContinuousClock.now + limit
    while !condition(now) {
      guard ContinuousClock.now < deadline else { throw HTTPRawClient.TimedOut(description: what) }
      try await Task.sleep(for: .milliseconds(2))
    }
  }

  /// The whole response on a stream.
  func response(_ stream: HTTP2StreamID) async throws -> Stream {
    try await wait("no whole response on \(stream)") { $0.streams[stream]?.isOver ?? false || $0.isClosed }
    return self[stream]
  }

  func get(_ path: String, method: String = "GET", fields: [(String, String)] = []) async throws -> Stream {
    try await response(try await request(path, method: method, fields: fields))
  }
}

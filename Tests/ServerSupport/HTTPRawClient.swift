package import NIOCore
internal import NIOPosix
package import NIOSSL
internal import Synchronization
internal import Testing

/// A client that sends exactly the bytes it is given and keeps all that comes back.
package final class HTTPRawClient: Sendable {
  package struct TimedOut: Error, CustomStringConvertible {
    package let description: String

    package init(description: String) { self.description = description }
  }

  /// A response as it stood on the wire.
  package struct Response {
    package var status: Int
    package var fields: [(name: String, value: String)]
    /// Without its framing.
    package var body: [UInt8]

    package subscript(_ name: String) -> String? {
      fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }
    package var text: String { String(decoding: body, as: UTF8.self) }
  }

  private struct State {
    var bytes: [UInt8] = []
    var isClosed = false
  }

  private final class Collector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    let state: @Sendable (_ change: (inout State) -> Void) -> Void
    init(state: @escaping @Sendable (_ change: (inout State) -> Void) -> Void) { self.state = state }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bytes = Self.unwrapInboundIn(data)
      state { $0.bytes.append(contentsOf: bytes.readableBytesView) }
    }
    func channelInactive(context: ChannelHandlerContext) { state { $0.isClosed = true } }
    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
  }

  private let state = Mutex(State())
  private let channelBox = Mutex<(any Channel)?>(nil)

  /// `receiveBuffer` is the size of the socket's receive buffer, in bytes, for readers that are to be slow. A client that
  /// does not close with the server stays when the server has ended its side.
  package static func connect(
    to address: SocketAddress, tls: NIOSSLContext? = nil, receiveBuffer: Int32? = nil, reads: Bool = true,
    closesWithServer: Bool = true
  ) async throws -> HTTPRawClient {
    let client = HTTPRawClient()
    var bootstrap = ClientBootstrap(group: NIOSingletons.posixEventLoopGroup)
      .channelOption(.autoRead, value: reads)
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelOption(.allowRemoteHalfClosure, value: !closesWithServer)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls {
            try channel.pipeline.syncOperations.addHandler(
              NIOSSLClientHandler(context: tls, serverHostname: nil))
          }
          try channel.pipeline.syncOperations.addHandler(
            Collector { change in client.state.withLock { change(&$0) } })
        }
      }
    if let receiveBuffer {
      bootstrap = bootstrap.channelOption(.socketOption(.so_rcvbuf), value: SocketOptionValue(receiveBuffer))
    }
    let channel = try await bootstrap.connect(to: address).get()
    client.channelBox.withLock { $0 = channel }
    return client
  }

  private var channel: any Channel {
    get throws { try #require(channelBox.withLock { $0 }) }
  }

  package func send(_ text: String) async throws {
    try await channel.writeAndFlush(ByteBuffer(string: text)).get()
  }

  package func send(_ bytes: [UInt8]) async throws {
    try await channel.writeAndFlush(ByteBuffer(bytes: bytes)).get()
  }

  /// One byte at a time, each in a packet of its own.
  package func drip(_ text: String) async throws {
    for byte in text.utf8 { try await channel.writeAndFlush(ByteBuffer(bytes: [byte])).get() }
  }

  /// Takes one read's worth from the socket, for clients that do not read by themselves.
  package func readOnce() throws { try channel.read() }

  package func startReading() async throws { try await channel.setOption(.autoRead, value: true).get() }

  package func stopReading() async throws { try await channel.setOption(.autoRead, value: false).get() }

  package func close() async { try? await channelBox.withLock { $0 }?.close().get() }

  package func closeOutput() async throws { try await channel.close(mode: .output).get() }

  package var isClosed: Bool { state.withLock { $0.isClosed } }
  package var received: [UInt8] { state.withLock { $0.bytes } }
  package var receivedText: String { String(decoding: received, as: UTF8.self) }

  /// Waits until `condition` holds for what has come so far.
  package func wait(
    _ what: String, for limit: Duration = .seconds(30), until condition: (_ client: HTTPRawClient) -> Bool
  ) async throws {
    let deadline = ContinuousClock.now + limit
    while !condition(self) {
      guard ContinuousClock.now < deadline else {
        throw TimedOut(description: "\(what); got \(received.count) bytes: \(receivedText.prefix(600))")
      }
      try await Task.sleep(for: .milliseconds(2))
    }
  }

  package func waitForClose(for limit: Duration = .seconds(30)) async throws {
    try await wait("the connection did not close", for: limit) { $0.isClosed }
  }

  /// The next response; `hasBody` is false for answers to HEAD. What follows it stays for the next call.
  package func response(hasBody: Bool = true, for limit: Duration = .seconds(30)) async throws -> Response {
    var found: (response: Response, length: Int)?
    try await wait("no whole response", for: limit) { client in
      found = Self.parse(client.received, hasBody: hasBody, isClosed: client.isClosed)
      return found != nil
    }
    let result = try #require(found)
    state.withLock { $0.bytes.removeFirst(result.length) }
    return result.response
  }

  /// Sends a request on this connection and waits for its response.
  package func get(_ target: String, method: String = "GET", _ fields: String...) async throws -> Response {
    try await send(
      "\(method) \(target) HTTP/1.1\r\nHost: test\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n")
    return try await response(hasBody: method != "HEAD")
  }

  private static func parse(_ bytes: [UInt8], hasBody: Bool, isClosed: Bool) -> (response: Response, length: Int)? {
    guard let end = firstIndex(of: "\r\n\r\n", in: bytes, from: 0) else { return nil }
    let lines = String(decoding: bytes[..<end], as: UTF8.self).split(separator: "\r\n")
    guard let statusLine = lines.first, let status = Int(statusLine.split(separator: " ")[1]) else { return nil }
    let fields = lines.dropFirst().map { line in
      let parts = line.split(separator: ":", maxSplits: 1)
      return (name: String(parts[0]), value: String(parts[1].drop { $0 == " " }))
    }
    var response = Response(status: status, fields: fields, body: [])
    let start = end + 4
    if !hasBody || status == 204 || status == 304 || status == 100 { return (response, start) }
    if let length = response["Content-Length"].flatMap({ Int($0) }) {
      guard bytes.count >= start + length else { return nil }
      response.body = Array(bytes[start..<start + length])
      return (response, start + length)
    }
    if response["Transfer-Encoding"] == "chunked" {
      var position = start
      while let lineEnd = firstIndex(of: "\r\n", in: bytes, from: position) {
        guard let size = Int(String(decoding: bytes[position..<lineEnd], as: UTF8.self), radix: 16),
          bytes.count >= lineEnd + 2 + size + 2
        else { return nil }
        response.body += bytes[lineEnd + 2..<lineEnd + 2 + size]
        guard bytes[lineEnd + 2 + size] == 13, bytes[lineEnd + 3 + size] == 10 else { return nil }
        position = lineEnd + 4 + size
        if size == 0 { return (response, position) }
      }
      return nil
    }
    guard isClosed else { return nil }
    response.body = Array(bytes[start...])
    return (response, bytes.count)
  }

  private static func firstIndex(of pattern: String, in bytes: [UInt8], from start: Int) -> Int? {
    let pattern = Array(pattern.utf8)
    guard bytes.count >= start + pattern.count else { return nil }
    return (start...bytes.count - pattern.count).first { bytes[$0..<$0 + pattern.count].elementsEqual(pattern) }
  }
}

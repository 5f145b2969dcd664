package import Base
internal import Glibc
package import HTTP
internal import Logging
package import NIOCore
internal import NIOPosix
package import NIOSSL
package import Storage
internal import Testing

/// A listener on a port of its own, with routes given as a closure.
package struct HTTPTestServer: HTTPResponder {
  package typealias Route = @Sendable (_ request: HTTPRequest, _ eventLoop: any EventLoop) -> HTTPAnswer

  package let route: Route
  /// Takes bodies while they arrive.
  package var intake: (@Sendable () -> any ArrivingBody)?
  package var isForAnyName: @Sendable (HTTPRequest) -> Bool

  package init(
    route: @escaping Route, intake: (@Sendable () -> any ArrivingBody)? = nil,
    isForAnyName: @escaping @Sendable (HTTPRequest) -> Bool = { _ in true }
  ) {
    (self.route, self.intake, self.isForAnyName) = (route, intake, isForAnyName)
  }

  package func answersUnderAnyName(_ request: HTTPRequest) -> Bool { isForAnyName(request) }
  package func isProbe(_ request: HTTPRequest) -> Bool { request.path == ["healthz"] }
  package func takesArrivingBody(of request: HTTPRequest) -> Bool { intake != nil }
  package func arrivingBody(of request: HTTPRequest) -> (any ArrivingBody)? { intake?() }

  package func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer { route(request, eventLoop) }

  /// Runs `body` with a server that stops afterwards.
  package static func run(
    limits: HTTPLimits = HTTPLimits(), address: String = "127.0.0.1", tls: NIOSSLContext? = nil,
    group: any EventLoopGroup = NIOSingletons.posixEventLoopGroup, tickInterval: TimeAmount = .milliseconds(20),
    passes: (any ViewerPasses)? = nil, proxies: TrustedProxies = .none, hosts: AllowedHosts = AllowedHosts(),
    certificateHosts: @escaping @Sendable () -> AllowedHosts? = { nil },
    isForAnyName: @escaping @Sendable (HTTPRequest) -> Bool = { _ in true }, prefix: String = "",
    route: @escaping Route = defaultRoute, intake: (@Sendable () -> any ArrivingBody)? = nil,
    _ body: (_ address: SocketAddress, _ listener: HTTPListener) async throws -> Void
  ) async throws {
    let listener = HTTPListener(
      responder: HTTPTestServer(route: route, intake: intake, isForAnyName: isForAnyName), limits: limits,
      proxies: proxies, hosts: hosts, certificateHosts: certificateHosts, passes: passes, prefix: prefix,
      clock: .system(),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, group: group, tickInterval: tickInterval)
    let source: TLSContextSource? = tls.map { context in { @Sendable in context } }
    let bound = try await listener.start(
      .address(try SocketAddress(ipAddress: address, port: 0)), tls: source)
    do {
      try await body(bound, listener)
    } catch {
      await listener.stop()
      throw error
    }
    await listener.stop()
  }

  /// Says what it was asked.
  package static let defaultRoute: Route = { request, _ in
    .now(.text("\(request.method) \(request.target.path) \(request.body.readableBytes)", cache: .never))
  }

  /// Answers every request with the same response.
  package static func always(_ response: HTTPResponse) -> Route { { _, _ in .now(response) } }
}

/// The bytes that test files hold, made once; no two stretches of them are alike.
private let pattern: [UInt8] = {
  var bytes = [UInt8](repeating: 0, count: 16 << 20)
  bytes.withUnsafeMutableBytes { room in
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    for index in stride(from: 0, to: room.count, by: 8) {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      room.storeBytes(of: state, toByteOffset: index, as: UInt64.self)
    }
  }
  return bytes
}()

/// A stretch of the pattern.
package func patternBytes(_ range: Range<Int>) -> [UInt8] { Array(pattern[range]) }

/// A slot of a memfd, not its first, that holds the first `count` bytes of the pattern.
/// `leftovers` counts it as having left its window.
package func memoryFile(_ count: Int, leftovers: LeftoverBudget? = nil) throws -> SharedFile {
  let store = SegmentStore(name: "test", leftovers: leftovers)
  let before = try store.makeFile()
  defer { withExtendedLifetime(before) {} }
  var memory = try SegmentMemory(in: store)
  try #require(memory.file.base > 0)
  _ = try memory.append([ByteBuffer(bytes: patternBytes(0..<count))])
  return memory.file
}

/// An unlinked file on disk that holds the first `count` bytes of the pattern.
package func diskFile(_ count: Int) throws -> SharedFile {
  var path = Array("/tmp/weir-test-XXXXXX".utf8CString)
  let descriptor = mkstemp(&path)
  try #require(descriptor >= 0)
  unlink(path)
  let file = SharedFile(taking: descriptor, kind: .disk)
  try write(patternBytes(0..<count), to: descriptor)
  return file
}

private func write(_ bytes: [UInt8], to descriptor: CInt) throws {
  var done = 0
  while done < bytes.count {
    let written = bytes[done...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
    try #require(written > 0)
    done += written
  }
}

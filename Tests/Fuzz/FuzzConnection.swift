@testable import Base
@testable import HTTP
import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOPosix
@testable import Storage

/// A whole connection of HTTP/2, with routes that answer, wait and break, and a socket that may be full. A frame of a type from
/// 0xF0 on is an order to the server as well; its first byte says how much.
final class FuzzConnection {
  /// Takes what the server writes, or lets it wait.
  private final class Socket: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer
    var ledger = HTTP2Ledger()
    var isShut = false
    private var writes: [EventLoopPromise<Void>?] = []

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      ledger.gets(Array(Self.unwrapOutboundIn(data).readableBytesView))
      writes.append(promise)
    }
    func flush(context: ChannelHandlerContext) { takeAll() }
    func takeAll() {
      guard !isShut else { return }
      let taken = writes
      writes = []
      for promise in taken { promise?.succeed() }
    }
    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
      let lost = writes
      writes = []
      for promise in lost { promise?.fail(ChannelError.ioOnClosedChannel) }
      context.close(mode: mode, promise: promise)
    }
  }

  /// Frames from this type on are orders.
  private static let orders: UInt8 = 0xF0
  private static let limits = HTTPLimits()
  private static let policy = Reloadable(HTTPPolicy(limits, origins: .playersOnly))
  private static let traffic = HTTPTraffic()
  private static let limiter = ConnectionLimiter(
    policy, limits: limits, memory: .unlimited, descriptors: .unlimited, traffic: traffic, waker: Waker())
  /// Nothing is read from a disk.
  private static let pool = NIOThreadPool(numberOfThreads: 1)
  private static let logger = Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() }

  private let channel = EmbeddedChannel()
  private let socket = Socket()
  private let routes = FuzzRoutes()
  private let loop: LoopContext

  init?() {
    let services = HTTPServices(
      responder: routes, passes: nil, limits: Self.limits, proxies: .none, policy: Self.policy, limiter: Self.limiter,
      traffic: Self.traffic, pools: SendingPools(limit: 1 << 30, threads: Self.pool), logger: Self.logger)
    loop = LoopContext(eventLoop: channel.eventLoop, interval: .milliseconds(250), traffic: Self.traffic) { 5 }
    guard let peer = HTTPPeer(of: channel, kind: .plain, services: services, loop: loop),
      let address = try? SocketAddress(ipAddress: "127.0.0.1", port: 1)
    else { return nil }
    _ = try? channel.pipeline.syncOperations.addHandlers(
      [socket, HTTP2Handler(services: services, loop: loop, peer: peer)])
    _ = try? channel.connect(to: address).wait()
  }

  /// The client sends `bytes`, so many frames in one piece.
  func receive(_ bytes: ArraySlice<UInt8>, framesAtOnce: Int) {
    var rest = bytes
    var piece: [UInt8] = []
    var frames = 0
    while !rest.isEmpty, channel.isActive {
      let isWhole = rest.count >= HTTP2FrameHead.size && HTTP2Ledger.length(rest) <= rest.count
      let frame = isWhole ? rest.prefix(HTTP2Ledger.length(rest)) : rest
      rest = rest.dropFirst(frame.count)
      if isWhole { socket.ledger.sends(frame) }
      piece += frame
      frames += 1
      let order = isWhole ? frame[frame.startIndex + 3] : 0
      guard order >= Self.orders || frames == framesAtOnce || rest.isEmpty else { continue }
      _ = try? channel.writeInbound(ByteBuffer(bytes: piece))
      if order >= Self.orders { obey(order - Self.orders, frame.dropFirst(HTTP2FrameHead.size).first ?? 0) }
      (piece, frames) = ([], 0)
      channel.embeddedEventLoop.run()
    }
  }

  private func obey(_ order: UInt8, _ value: UInt8) {
    let live = routes.live.filter { $0.writer != nil }
    let uploads = routes.uploads.filter { $0.source != nil }
    let writer = live.isEmpty ? nil : live[Int(value) % live.count].writer
    let upload = uploads.isEmpty ? nil : uploads[Int(value) % uploads.count]
    let response = HTTPResponse(status: .notFound, body: .pieces([FuzzRoutes.piece(Int(value) << 8)]))
    switch order {
    case 0: routes.nextWaiting()?.succeed(response)
    case 1: routes.nextWaiting()?.fail(ChannelError.eof)
    case 2: writer?.write([FuzzRoutes.piece(Int(value) << 8)])
    case 3: writer?.finish()
    case 4:
      upload?.isAccepted = true
      upload?.source?.accept()
    case 5:
      upload?.isPaused = true
      upload?.source?.pause()
    case 6:
      upload?.isPaused = false
      upload?.source?.resume()
    case 7:
      upload?.isOver = true
      upload?.source?.respond(response)
    case 8: upload?.source?.cut()
    case 9: socket.isShut = true
    case 10: openSocket()
    case 11: channel.embeddedEventLoop.advanceTime(by: .milliseconds(100 * Int64(value)))
    case 12: for case let connection as HTTP2Connection in loop.currentMembers { connection.stop() }
    default: routes.generation.change()
    }
  }

  private func openSocket() {
    socket.isShut = false
    socket.takeAll()
  }

  /// All that may be sent is sent, and nothing stays of a connection that has closed.
  func end() {
    openSocket()
    // Many requests wait for later turns of the loop (`LoopTurns`).
    channel.embeddedEventLoop.advanceTime(by: .milliseconds(10))
    if channel.isActive { precondition(socket.ledger.isSettled) }
    _ = try? channel.finish(acceptAlreadyClosed: true)
    precondition(loop.currentMembers.isEmpty && Self.limiter.connections == 0)
    precondition(routes.live.allSatisfy { $0.writer?.isOpen != true })
    precondition(routes.uploads.allSatisfy(\.isOver))
    while let promise = routes.nextWaiting() { promise.fail(ChannelError.eof) }
    channel.embeddedEventLoop.run()
  }
}

@testable import Base
import Glibc
@testable import HTTP
import NIOCore
import NIOHTTP1
@testable import Storage

/// The routes of a connection that is fuzzed. The first byte of a path says how a request is answered, the next two how long the
/// answer is. What takes its time waits for an order. Used by one thread.
final class FuzzRoutes: HTTPResponder, @unchecked Sendable {
  /// An endless body.
  final class Live: LiveBody, @unchecked Sendable {
    var writer: LiveBodyWriter?
    func start(_ writer: LiveBodyWriter) { self.writer = writer }
    func stop() { writer = nil }
  }

  /// A body that arrives.
  final class Upload: ArrivingBody {
    var source: (any ArrivingBodySource)?
    /// Nothing comes before it is accepted, while it is paused, or after its end.
    var isAccepted = false
    var isPaused = false
    var isOver = false
    func begin(_ source: any ArrivingBodySource, on eventLoop: any EventLoop) { self.source = source }
    func receive(_ bytes: ByteBuffer) { precondition(isAccepted && !isPaused && !isOver && bytes.readableBytes > 0) }
    func finish() {
      precondition(isAccepted && !isPaused && !isOver)
      isOver = true
    }
    func abandon(_ reason: String) {
      isOver = true
      source = nil
    }
  }

  private(set) var waiting: [EventLoopPromise<HTTPResponse>] = []
  private(set) var live: [Live] = []
  private(set) var uploads: [Upload] = []
  let generation = Generation()

  private static let bytes = ByteBuffer(repeating: 0x78, count: 1 << 18)
  /// Shorter than any range of it.
  private static let short = SharedFile(taking: open("/dev/null", O_RDONLY), kind: .memory)

  static func piece(_ length: Int) -> BodyPiece { .bytes(bytes.getSlice(at: 0, length: length) ?? bytes) }

  func takesArrivingBody(of request: HTTPRequest) -> Bool {
    (request.target.path.utf8.dropFirst().first ?? 0) & 8 != 0
  }

  func arrivingBody(of request: HTTPRequest) -> (any ArrivingBody)? {
    guard takesArrivingBody(of: request) else { return nil }
    uploads.append(Upload())
    return uploads.last
  }

  func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    let path = Array(request.target.path.utf8.dropFirst())
    let length = path.count > 2 ? Int(path[1]) << min(10, Int(path[2]) & 15) : 1
    let whole = HTTPResponse(ranges: .bytes, body: .pieces([Self.piece(length), Self.piece(1)]))
    switch (path.first ?? 0) & 7 {
    case 0: return .now(.text("x", cache: .never))
    case 1: return .now(whole)
    case 2: return .later(wait(on: eventLoop))
    case 3:
      let body = Live()
      live.append(body)
      return .now(HTTPResponse(status: .partialContent, body: .live(body)))
    case 4: return .now(HTTPResponse(status: .noContent))
    case 5:
      let broken = BodyPiece.file(FileRange(file: Self.short, offset: 0, length: 7))
      return .now(HTTPResponse(body: .pieces([Self.piece(length), broken])))
    case 6: return .now(whole, Cacheability(generation))
    default: return .later(wait(on: eventLoop), Cacheability(generation))
    }
  }

  private func wait(on eventLoop: any EventLoop) -> EventLoopFuture<HTTPResponse> {
    let promise = eventLoop.makePromise(of: HTTPResponse.self)
    waiting.append(promise)
    return promise.futureResult
  }

  /// The response that has waited longest.
  func nextWaiting() -> EventLoopPromise<HTTPResponse>? { waiting.isEmpty ? nil : waiting.removeFirst() }
}

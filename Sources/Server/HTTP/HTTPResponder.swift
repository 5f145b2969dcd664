internal import Glibc
internal import NIOCore
internal import Synchronization

/// Where the routes live: answers requests, knows nothing of sockets.
protocol HTTPResponder: Sendable {
  /// Called on `eventLoop`, which it must not block: what has to wait (a disk, a playlist that is not there yet) is
  /// `later`. OPTIONS is answered before it gets here.
  func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer

  /// What OPTIONS of an address is answered with.
  func options(of request: HTTPRequest) -> HTTPResponse

  /// Whether this is answered although the server is full.
  func answersAlways(_ request: HTTPRequest) -> Bool
}

extension HTTPResponder {
  func options(of request: HTTPRequest) -> HTTPResponse { FixedAnswer.preflight }
  func answersAlways(_ request: HTTPRequest) -> Bool { false }
}

/// A response, or the promise of one. A future that fails is answered with 500, and the log says why. With `Sharing` it
/// is the same for everybody who asks for the same target (GET, nothing conditional).
enum HTTPAnswer: Sendable {
  case now(HTTPResponse, Sharing? = nil)
  case later(EventLoopFuture<HTTPResponse>, Sharing? = nil)

  func shared(_ sharing: Sharing) -> HTTPAnswer {
    switch self {
    case .now(let response, _): .now(response, sharing)
    case .later(let future, _): .later(future, sharing)
    }
  }
}

/// Until when an answer is good for others who ask for the same target, and who is to know that they do.
struct Sharing: Sendable {
  /// Changes when the answer may.
  let stamp: ChangeStamp
  /// What it said before the answer was made.
  let version: Int
  let admission: any Admission

  init(_ stamp: ChangeStamp, admission: any Admission) {
    self.stamp = stamp
    version = stamp.version
    self.admission = admission
  }

  var isCurrent: Bool { stamp.version == version }
}

/// Counts the clients of something that is shared.
protocol Admission: AnyObject, Sendable {
  /// A client asks. False when there is no room for it: then the routes say so.
  func admit(_ client: ClientID) -> Bool
}

/// A number for a client: one address may be many clients, which User-Agent tells apart as well as can be.
struct ClientID: Hashable, Sendable {
  let number: Int

  init(number: Int) { self.number = number }

  init(_ address: SocketAddress?, _ fields: RequestFields) {
    var hasher = Hasher()
    // By their place (ip(7), ipv6(7)): several C modules declare the fields, and which of them the compiler finds
    // depends on what else is imported.
    switch address {
    case .v4(let address): withUnsafeBytes(of: address.address) { hasher.combine(bytes: $0[4..<8].rebased) }
    case .v6(let address): withUnsafeBytes(of: address.address) { hasher.combine(bytes: $0[8..<24].rebased) }
    case .unixDomainSocket, nil: break
    }
    hasher.combine(fields.clientHash)
    number = hasher.finalize()
  }
}

/// Rises with every change of something, so that whoever keeps what was made of it knows when it is old. Anybody may
/// look at it, without a lock.
final class ChangeStamp: Sendable {
  private let count = Atomic(0)

  var version: Int { count.load(ordering: .acquiring) }

  func change() { count.wrappingAdd(1, ordering: .releasing) }
}

extension Slice<UnsafeRawBufferPointer> {
  fileprivate var rebased: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: self) }
}

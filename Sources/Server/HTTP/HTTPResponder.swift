package import Basics
package import Ingest
package import NIOCore
internal import NIOHTTP1

/// Where the routes live: answers requests, knows nothing of sockets.
package protocol HTTPResponder: Sendable {
  /// Called on `eventLoop`, which it must not block: what has to wait (a disk, a playlist that is not there yet) is
  /// `later`. OPTIONS is answered before it gets here.
  func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer

  /// What OPTIONS of an address is answered with.
  func options(of request: HTTPRequest) -> HTTPResponse

  /// Whether this is answered although the server is full.
  func answersAlways(_ request: HTTPRequest) -> Bool

  /// Why a request's body is not received; nil where the route wants one, and from this client. Asked when the head is
  /// here, and only where it announces a body.
  func refusal(ofBodyOf request: HTTPRequest) -> Problem?
}

extension HTTPResponder {
  package func options(of request: HTTPRequest) -> HTTPResponse { StandardResponse.preflight }
  package func answersAlways(_ request: HTTPRequest) -> Bool { false }
  package func refusal(ofBodyOf request: HTTPRequest) -> Problem? { nil }
}

/// A response, or the promise of one. A future that fails is answered with 500, and the log says why. With `Cacheability` it
/// is the same for everybody who asks for the same target (GET, nothing conditional).
package struct HTTPAnswer: Sendable {
  package enum Kind: Sendable {
    case now(HTTPResponse)
    case later(EventLoopFuture<HTTPResponse>)
  }

  package let kind: Kind
  package private(set) var sharing: Cacheability?
  /// Counts whoever is given it, and may find no room; nil for what anybody may have.
  private(set) var admission: (any Admission)?

  package static func now(_ response: HTTPResponse, _ sharing: Cacheability? = nil) -> HTTPAnswer {
    HTTPAnswer(kind: .now(response), sharing: sharing)
  }

  package static func later(_ response: EventLoopFuture<HTTPResponse>, _ sharing: Cacheability? = nil) -> HTTPAnswer {
    HTTPAnswer(kind: .later(response), sharing: sharing)
  }

  /// The response, whenever it comes.
  package func response(on eventLoop: any EventLoop) -> EventLoopFuture<HTTPResponse> {
    switch kind {
    case .now(let response): eventLoop.makeSucceededFuture(response)
    case .later(let response): response
    }
  }

  /// The same with another response, which is there.
  func saying(_ response: HTTPResponse) -> HTTPAnswer {
    HTTPAnswer(kind: .now(response), sharing: sharing, admission: admission)
  }

  package func shared(_ sharing: Cacheability) -> HTTPAnswer {
    var answer = self
    answer.sharing = sharing
    return answer
  }

  package func counted(by admission: any Admission) -> HTTPAnswer {
    var answer = self
    answer.admission = admission
    return answer
  }
}

/// Until when an answer is good for others who ask for the same target.
package struct Cacheability: Sendable {
  /// Changes when the answer may.
  package let stamp: Generation
  /// What it said before the answer was made.
  package let version: Int

  package init(_ stamp: Generation) {
    self.stamp = stamp
    version = stamp.version
  }

  package var isCurrent: Bool { stamp.version == version }
}

/// Counts the clients of something.
package protocol Admission: AnyObject, Sendable {
  /// A client is about to be given an answer. What it hears instead where there is no room for it; else nil.
  func refusal(of client: ClientID) -> HTTPResponse?
}

extension Admission {
  /// What the client is given: only answers that bring something count.
  package func admit(_ client: ClientID, to response: HTTPResponse) -> HTTPResponse {
    response.status.code < 400 ? refusal(of: client) ?? response : response
  }
}

extension ClientID {
  /// Whoever sends these fields from that address.
  package init(_ address: NetworkAddress?, _ fields: RequestFields) {
    var hasher = Hasher()
    hasher.combine(address)
    hasher.combine(fields.clientHash)
    self.init(number: hasher.finalize(), host: address?.host)
  }
}

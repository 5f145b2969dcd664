package import Base
package import NIOCore
internal import NIOHTTP1

/// The routes: responds to requests, independent of sockets.
package protocol HTTPResponder: Sendable {
  /// Called on `eventLoop`, which it must not block. A response that has to wait (a disk, a future playlist) is `later`. OPTIONS
  /// is handled before.
  func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer

  /// The response to OPTIONS.
  func options(of request: HTTPRequest) -> HTTPResponse

  /// Whether this request is served even when the server is full.
  func answersAlways(_ request: HTTPRequest) -> Bool

  /// Whether this request asks only whether the server lives, and is answered even beyond the connections of its address.
  func isProbe(_ request: HTTPRequest) -> Bool

  /// Whether a request is answered whatever host it names: because all origins may read the answer, or because its token holds.
  /// What a route marks as shared must be. Asked only for a host that is not the server's.
  func answersUnderAnyName(_ request: HTTPRequest) -> Bool

  /// Why a request's body is refused; nil when the route accepts one from this client. Called after the head, and only when it
  /// announces a body.
  func refusal(ofBodyOf request: HTTPRequest) -> Problem?

  /// Takes the body of this request while it arrives; nil if it is collected first. Asked after `refusal(ofBodyOf:)`.
  func arrivingBody(of request: HTTPRequest) -> (any ArrivingBody)?

  /// Whether `arrivingBody(of:)` takes the body of this request, so that the limit of collected bodies does not apply.
  func takesArrivingBody(of request: HTTPRequest) -> Bool
}

extension HTTPResponder {
  package func options(of request: HTTPRequest) -> HTTPResponse { StandardResponse.preflight }
  package func answersAlways(_ request: HTTPRequest) -> Bool { false }
  package func isProbe(_ request: HTTPRequest) -> Bool { false }
  package func answersUnderAnyName(_ request: HTTPRequest) -> Bool { true }
  package func refusal(ofBodyOf request: HTTPRequest) -> Problem? { nil }
  package func arrivingBody(of request: HTTPRequest) -> (any ArrivingBody)? { nil }
  package func takesArrivingBody(of request: HTTPRequest) -> Bool { false }
}

/// A response, now or later. A failed future gives a 500, and the log has the reason. With `Cacheability` the response is the
/// same for all clients with the same target (GET, unconditional).
package struct HTTPAnswer: Sendable {
  package enum Kind: Sendable {
    case now(HTTPResponse)
    case later(EventLoopFuture<HTTPResponse>)
  }

  package private(set) var kind: Kind
  package private(set) var sharing: Cacheability?
  /// Counts the client and may refuse it. Nil when the response is not limited.
  private(set) var admission: (any Admission)?
  /// Who may get the response when it is shared; nil for all.
  private(set) var rule: (any ViewerRule)?
  /// What admitted the request. The response ends when it holds no longer.
  private(set) var pass: (any ViewerPass)?
  /// Holds as long as the response is open to all; nil where it is always, or a rule decides.
  private(set) var openness: (any ViewerOpenness)?

  /// Told of each further client that gets the shared response over HTTP/2: the other end of its connection.
  private(set) var follow: (@Sendable (SocketAddress) -> Void)?

  /// Something admitted the request already.
  package var isAdmitted: Bool { pass != nil }

  package static func now(_ response: HTTPResponse, _ sharing: Cacheability? = nil) -> HTTPAnswer {
    HTTPAnswer(kind: .now(response), sharing: sharing)
  }

  package static func later(_ response: EventLoopFuture<HTTPResponse>, _ sharing: Cacheability? = nil) -> HTTPAnswer {
    HTTPAnswer(kind: .later(response), sharing: sharing)
  }

  /// The response, when it is available.
  package func response(on eventLoop: any EventLoop) -> EventLoopFuture<HTTPResponse> {
    switch kind {
    case .now(let response): eventLoop.makeSucceededFuture(response)
    case .later(let response): response
    }
  }

  /// A copy with another response, available now.
  func saying(_ response: HTTPResponse) -> HTTPAnswer {
    var answer = self
    answer.kind = .now(response)
    return answer
  }

  package func shared(_ sharing: Cacheability) -> HTTPAnswer {
    var answer = self
    answer.sharing = sharing
    return answer
  }

  /// The response with the pass that admitted it, which is known only with the response.
  package func settled(on eventLoop: any EventLoop) -> EventLoopFuture<HTTPResponse> {
    let pass = pass
    return response(on: eventLoop).map { response in
      var response = response
      response.pass = pass
      return response
    }
  }

  /// The same answer for a client that a pass admitted. It is shared with those whom the rule allows, or, when it is private,
  /// with none.
  package func admitted(by pass: any ViewerPass, rule: (any ViewerRule)?, isPrivate: Bool) -> HTTPAnswer {
    var answer = self
    (answer.pass, answer.rule) = (pass, rule)
    guard isPrivate else { return answer }
    answer.sharing = nil
    switch kind {
    case .now(let response): answer.kind = .now(response.forOneClient)
    case .later(let response): answer.kind = .later(response.map(\.forOneClient))
    }
    return answer
  }

  /// The same answer for every client, as long as what it is of is open to all. `pass` is this client's own.
  package func admitted(toOpen openness: any ViewerOpenness, by pass: any ViewerPass) -> HTTPAnswer {
    var answer = self
    (answer.pass, answer.openness) = (pass, openness)
    return answer
  }

  /// The same answer, which tells `follow` of each further client that gets it over HTTP/2. Called on their event loops.
  package func followed(by follow: @escaping @Sendable (SocketAddress) -> Void) -> HTTPAnswer {
    var answer = self
    answer.follow = follow
    return answer
  }

  package func counted(by admission: any Admission) -> HTTPAnswer {
    var answer = self
    answer.admission = admission
    return answer
  }
}

/// How long a response is valid for other requests with the same target.
package struct Cacheability: Sendable {
  /// Changes when the response may change.
  package let stamp: Generation
  /// The stamp's value before the response was made.
  package let version: Int

  package init(_ stamp: Generation) {
    self.stamp = stamp
    version = stamp.version
  }

  package var isCurrent: Bool { stamp.version == version }
}

/// Counts the clients of a resource.
package protocol Admission: AnyObject, Sendable {
  /// Called before a client gets a response. Returns a refusal when there is no room; else nil.
  func refusal(of client: ClientID) -> HTTPResponse?
}

extension Admission {
  /// The response for the client. Only successful responses count.
  package func admit(_ client: ClientID, to response: HTTPResponse) -> HTTPResponse {
    response.status.code < 400 ? refusal(of: client) ?? response : response
  }
}

extension ClientID {
  /// The client with this address and these fields.
  package init(_ address: NetworkAddress?, _ fields: RequestFields) {
    var hasher = Hasher()
    hasher.combine(address)
    hasher.combine(fields.clientHash)
    self.init(number: hasher.finalize(), host: address?.host)
  }
}

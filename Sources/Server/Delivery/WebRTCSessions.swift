internal import Base
package import HTTP
internal import NIOCore
internal import NIOHTTP1
package import Publishing
internal import Storage
internal import WebRTC

/// What addresses of WHIP and WHEP have in common: `/{first}/{stream}` takes offers, `/{first}/{stream}/{session}` is what a peer
/// changes (PATCH) and ends (DELETE).
package struct WebRTCSessions: Sendable {
  /// What a path names.
  package enum Place {
    case endpoint(StreamName)
    case session(StreamName, String)

    package init?(_ path: [String]) {
      guard path.count == 2 || path.count == 3, let name = StreamName(path[1]) else { return nil }
      self = path.count == 2 ? .endpoint(name) : .session(name, path[2])
    }

    var allowed: String {
      switch self {
      case .endpoint: "POST, OPTIONS"
      case .session: "PATCH, DELETE, OPTIONS"
      }
    }
  }

  static let (offerType, fragmentType) = ("application/sdp", "application/trickle-ice-sdpfrag")
  /// Bytes of an offer that are collected. What a listener reads of them is its own limit.
  static let offerBytes = 64 * 1024
  static let never = HeaderField("Cache-Control", CachePolicy.never.value)
  static let noSession = Problem(.noSuchSession, "There is no session of that name at this address.")

  let listener: WebRTCListener
  let side: WebRTCListener.Side
  let offers: ArrivingOffers
  /// Servers of STUN and TURN that peers are told, as values of `Link` (RFC 9725 §4.6).
  let iceServers: [String]

  /// A place for an offer of this request; nil if there is none.
  func place(for request: HTTPRequest) -> ArrivingOffers.Place? {
    let address = request.client ?? NetworkAddress(request.source.peer)
    return offers.place(for: address?.hostText ?? "")
  }

  /// RFC 9725 §4.2: which types an address takes, and what pages of other origins may send there. Which origins may is up to
  /// `CrossOrigin`.
  package static func options(of request: HTTPRequest) -> HTTPResponse {
    guard let place = Place(request.path) else { return Problem.nothingHere.response }
    var fields = [HeaderField("Allow", place.allowed)]
    switch place {
    case .endpoint: fields.append(HeaderField("Accept-Post", offerType))
    case .session: fields.append(HeaderField("Accept-Patch", fragmentType))
    }
    fields += [
      HeaderField("Access-Control-Allow-Methods", place.allowed),
      HeaderField("Access-Control-Allow-Headers", "Authorization, Content-Type, If-Match"),
      HeaderField("Access-Control-Max-Age", "86400"),
    ]
    return HTTPResponse(status: .noContent, headers: fields)
  }

  /// Why the body of a request is refused, by its address, its method and its type; nil if it may come.
  static func refusal(ofBodyOf request: HTTPRequest, at place: Place) -> Problem? {
    let type = request.header("Content-Type")?.split(separator: ";").first?.lowercased()
    switch (place, request.method) {
    case (.endpoint, .post):
      guard type == offerType else {
        return Problem(
          .notAnOffer, "This address takes offers of WebRTC, and the body is of another type.",
          help: "Send Content-Type: \(offerType).", headers: [HeaderField("Accept-Post", offerType)])
      }
      return nil
    case (.session, .patch):
      guard type == fragmentType else {
        return Problem(
          .notAnOffer, "A session takes fragments of offers, and the body is of another type.",
          help: "Send Content-Type: \(fragmentType).",
          headers: [HeaderField("Accept-Patch", fragmentType)])
      }
      return nil
    case (.session, .delete): return .bodyTooLarge(0)
    default: return .methodNotAllowed(allow: place.allowed)
    }
  }

  /// The response to a request whose body, if it has one, is complete.
  func respond(to request: HTTPRequest, at place: Place, on eventLoop: any EventLoop) -> HTTPAnswer {
    switch (place, request.method) {
    case (.endpoint, .post):
      return .now(
        Problem.badRequest("The request has no body, so there is no offer.", help: "Send a session description.")
          .response)
    case (.session(let stream, let session), .patch): return change(session, of: stream, request, on: eventLoop)
    case (.session(let stream, let session), .delete):
      return .later(
        listener.end(session, of: stream, side).hop(to: eventLoop).map {
          if case .taken = $0 { HTTPResponse(headers: [Self.never]) } else { Self.refusal($0).response }
        })
    case (.session(let stream, let session), .get):
      // RFC 9725 §4.2 has no answer to GET while the session lasts. Without a change it tells the reason of one that is over.
      return .later(
        listener.ending(of: session, of: stream, side).hop(to: eventLoop).map {
          ($0.map { Self.refusal(.over($0)) } ?? .methodNotAllowed(allow: place.allowed)).response
        })
    default: return .now(Problem.methodNotAllowed(allow: place.allowed).response)
    }
  }

  /// Why a session is not changed.
  private static func refusal(_ change: WebRTCChange) -> Problem {
    switch change {
    case .over(let reason):
      Problem(.sessionEnded, reason, headers: [never])
    case .outdated: Problem(.conditionFailed, "The tag in If-Match is not that of the session.")
    case .malformed(let error): Problem.badRequest("The fragment cannot be read: \(error).")
    case .noSuchSession, .taken, .restarted: noSession
    }
  }

  private func change(
    _ session: String, of stream: StreamName, _ request: HTTPRequest, on eventLoop: any EventLoop
  ) -> HTTPAnswer {
    // RFC 9725 §4.3.1
    guard let tag = request.header("If-Match") else {
      return .now(
        Problem(
          .conditionMissing, "A change needs If-Match with the session's tag.", help: "Send the ETag of the answer."
        ).response)
    }
    let text = String(buffer: request.body)
    return .later(
      listener.change(session, of: stream, side, text, ifMatch: tag).hop(to: eventLoop).map { change in
        switch change {
        case .taken: HTTPResponse(status: .noContent, headers: [Self.never])
        case .restarted(let fragment, let tag):
          HTTPResponse(
            headers: [HeaderField("Content-Type", Self.fragmentType), HeaderField("ETag", tag), Self.never],
            body: .pieces([.bytes(ByteBuffer(string: fragment))]))
        default: Self.refusal(change).response
        }
      })
  }

  /// The response to an offer.
  func response(_ reply: WebRTCReply, to request: HTTPRequest) -> HTTPResponse {
    switch reply {
    case .answered(let answer):
      let place = request.path.prefix(2).joined(separator: "/")
      return HTTPResponse(
        status: .created,
        headers: [
          HeaderField("Content-Type", Self.offerType),
          HeaderField("Location", "\(request.base)/\(place)/\(answer.session)"), HeaderField("ETag", answer.entityTag),
          Self.never,
        ] + iceServers.map { HeaderField("Link", $0) } + answer.omissions.map { HeaderField("Weir-Left-Out", $0) }
          + answer.replacements.map { HeaderField("Weir-Replaced", $0) },
        body: .pieces([.bytes(ByteBuffer(string: answer.description))]))
    case .notTaken(let error):
      switch error.code {
      case .malformed: return Problem.badRequest("The offer cannot be read: \(error).").response
      case .unacceptable:
        return Problem(.offerNotTaken, "The offer cannot be taken: \(error).").response
      case .unfitting:
        return Problem(.nothingFits, "Nothing can be sent: \(error).").response
      }
    case .needs: return Problem(.nothingFits, "Nothing can be sent: what fits is not made.").response
    case .refused(let refusal): return refusal.problem.response
    case .tooManyWaiting:
      return Problem(
        .tooManyUploads, "Too many sessions of this address wait to be connected.", help: "Try again in 5 s.",
        retryAfter: 5
      ).response
    case .noRoom:
      return Problem.full(.tooManyViewers, "As many streams are watched by WebRTC as may be.").response
    case .ended(let reason): return Problem(.publicationEnded, reason).response
    }
  }
}

package import Base
package import HTTP
package import NIOCore
internal import NIOHTTP1
internal import Playlists
internal import Publishing
package import Streams
internal import Synchronization
package import WebRTC

/// `POST /whep/{stream}` (draft-ietf-wish-whep): a viewer by WebRTC offers to receive and gets an answer. `/whep/{stream}/{session}` is
/// what it changes (PATCH) and ends (DELETE). Who may watch is asked as for other ways to watch.
package struct WHEPRoutes {
  private let sessions: WebRTCSessions?
  private let streams: StreamRegistry
  private let viewers: ViewerRegistry
  private let descriptors: DescriptorBudget
  private let gate: ViewerGate

  /// - Parameters:
  ///   - listener: nil where WebRTC is off.
  ///   - iceServers: servers of STUN and TURN that viewers are told, as values of `Link`.
  package init(
    listener: WebRTCListener?, iceServers: [String], streams: StreamRegistry, viewers: ViewerRegistry,
    descriptors: DescriptorBudget, gate: ViewerGate
  ) {
    sessions = listener.map {
      WebRTCSessions(listener: $0, side: .viewer, offers: ArrivingOffers(), iceServers: iceServers)
    }
    (self.streams, self.viewers, self.descriptors, self.gate) = (streams, viewers, descriptors, gate)
  }

  /// Whether a request is for WHEP.
  package static func isAsked(by request: HTTPRequest) -> Bool { request.path.first == "whep" }

  /// Whether its body is an offer, which may be larger than other bodies.
  package static func isOffer(_ request: HTTPRequest) -> Bool {
    isAsked(by: request) && request.method == .post && request.path.count == 2
  }

  /// Why the body of a request is refused; nil if it may come.
  package func refusal(ofBodyOf request: HTTPRequest) -> Problem? {
    guard let place = WebRTCSessions.Place(request.path) else { return .nothingHere }
    guard sessions != nil else { return .webRTCIsOff }
    return WebRTCSessions.refusal(ofBodyOf: request, at: place)
  }

  /// The response to a request whose body, if it has one, is complete.
  package func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    guard let place = WebRTCSessions.Place(request.path) else { return .now(Problem.nothingHere.response) }
    return sessions?.respond(to: request, at: place, on: eventLoop) ?? .now(Problem.webRTCIsOff.response)
  }

  /// Collects the offer of a request, and asks who its viewer is once it is complete.
  package func body(of request: HTTPRequest) -> (any ArrivingBody)? {
    guard let sessions, case .endpoint(let name)? = WebRTCSessions.Place(request.path) else { return nil }
    let routes = self
    return OfferBody(sessions.place(for: request)) { offer, loop in
      routes.gate.admit(request, on: loop) { viewer in
        routes.watch(name, offer, request, viewer, sessions, on: loop)
      }.response(on: loop)
    } abandoned: {
      sessions.end(answeredBy: $0, of: name)
    }
  }

  private func watch(
    _ name: StreamName, _ offer: String, _ request: HTTPRequest, _ viewer: Viewer, _ sessions: WebRTCSessions,
    on loop: any EventLoop
  ) -> HTTPAnswer {
    guard let stream = streams.stream(name) else {
      return .now(Problem(.noSuchStream, "No stream \"\(name)\" is live.", help: "Try again when it is.").response)
    }
    let pass = gate.pass(of: viewer, for: name)
    return stream.wait(for: .beginning, on: loop, atMost: LiveRoutes.patience).answer { view in
      guard view.phase != .ended else {
        return .now(Problem(.streamEnded, "The stream \"\(name)\" has ended.").response)
      }
      guard view.epoch.window.hasBegun else { return .now(Problem.notYet(name).response) }
      let client = ClientID(request.client, request.fields)
      guard descriptors.hasViewerRoom, let seat = viewers.waitingSeat(stream: name, client: client) else {
        return .now(
          Problem.full(.tooManyViewers, "The server has as many viewers as it may have (--max-viewers).").response)
      }
      stream.holdFollowed()
      let media = stream.followed
      let watched = WatchedMedia(
        stream: stream, tracks: media.tracks, isReordered: media.isReordered, makable: media.makable,
        place: ViewerPlace(seat, descriptors), mayWatch: { pass.holds })
      let reply = reply(to: offer, watched, of: stream, WebRTCClient(of: request), sessions)
      reply.whenComplete { _ in stream.letGoOfFollowed() }
      return .later(reply.hop(to: loop).map { sessions.response($0, to: request) })
    }
  }

  /// Answers an offer. What does not fit is made first, where it can be: not before the whole offer was found good.
  private func reply(
    to offer: String, _ watched: WatchedMedia, of stream: LiveStream, _ client: WebRTCClient,
    _ sessions: WebRTCSessions
  ) -> EventLoopFuture<WebRTCReply> {
    let first = sessions.listener.watch(offer, watched, of: client)
    let eventLoop = first.eventLoop
    return first.flatMap { reply in
      guard case .needs(let kinds) = reply else { return eventLoop.makeSucceededFuture(reply) }
      return stream.make(kinds, on: eventLoop).flatMap {
        let media = stream.followed
        var made = watched
        (made.tracks, made.isReordered, made.makable) = (media.tracks, media.isReordered, [])
        return sessions.listener.watch(offer, made, of: client)
      }
    }
  }
}

/// The place of a viewer by WebRTC among all viewers, with the descriptor of the connection by TCP that it may have once it is
/// connected.
private final class ViewerPlace: WatchingPlace {
  private let seat: ViewerSeat
  private let descriptors: DescriptorBudget
  private let hasDescriptor = Atomic(false)

  init(_ seat: ViewerSeat, _ descriptors: DescriptorBudget) { (self.seat, self.descriptors) = (seat, descriptors) }

  deinit { if hasDescriptor.load(ordering: .relaxed) { descriptors.giveBackViewer() } }

  func connected() -> Bool {
    guard descriptors.takeViewer() else { return false }
    hasDescriptor.store(true, ordering: .relaxed)
    return seat.connect()
  }

  func whenRevoked(_ end: @escaping @Sendable () -> Void) { seat.whenRevoked(end) }
}

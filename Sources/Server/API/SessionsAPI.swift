internal import Answers
internal import Base
internal import Delivery
internal import FMP4
internal import HTTP
internal import NIOCore
internal import NIOPosix
internal import Publishing
internal import Streams

/// `/api/v1/sessions`: the publishers, and the viewers whose responses have no end. Other viewers are only counted: a player of
/// HLS or DASH has no connection of its own.
struct SessionsAPI {
  let streams: StreamRegistry
  let viewers: ViewerRegistry
  let clock: SteadyClock

  /// A page: publishers, then viewers, in the order of their ids. There may be tens of thousands, so it is made on a thread.
  func list(_ request: APIRequest) -> HTTPAnswer {
    let name = request.http.query("stream")
    let (page, after): (ListPage, SessionID?)
    do throws(ValueError) {
      page = try ListPage(request.http)
      after = try page.after.map { text throws(ValueError) in
        guard let id = SessionID(text) else {
          throw ValueError("after is no session of this server", advice: "use `next` of the page before")
        }
        return id
      }
    } catch {
      return ListPage.refusal(error)
    }
    return onThread(request) {
      let counts = viewers.counts.streams.filter { name == nil || $0.key.description == name }
      let numbers = counts.map { ($0.key.description, $0.value.values.reduce(0, +)) }
      let rest = all.filter { session in
        (name == nil || session.stream.description == name) && after.map { $0 < session.id } ?? true
      }.sorted { $0.id < $1.id }
      let shown = rest.prefix(page.limit)
      return .json(
        SessionsAnswer(
          sessions: shown.map(answer), viewers: Dictionary(uniqueKeysWithValues: numbers),
          next: shown.count < rest.count ? shown.last?.id.description : nil))
    }
  }

  func one(_ request: APIRequest) -> HTTPAnswer {
    guard let id = SessionID(request[0]) else { return .now(Self.missing) }
    return onThread(request) { find(id).map { .json(answer($0)) } ?? Self.missing }
  }

  func end(_ request: APIRequest) -> HTTPAnswer {
    guard let id = SessionID(request[0]) else { return .now(Self.missing) }
    return onThread(request) {
      guard let session = find(id) else { return Self.missing }
      let isEnded =
        switch session {
        case .publisher(let session): streams.stream(session.stream)?.endSession(id, by: request.who) ?? false
        case .viewer: viewers.endSession(id)
        }
      return isEnded ? .json(answer(session)) : Self.missing
    }
  }

  private enum Session {
    case publisher(PublisherSession)
    case viewer(ViewerSession)

    var id: SessionID {
      switch self {
      case .publisher(let session): session.id
      case .viewer(let session): session.id
      }
    }

    var stream: StreamName {
      switch self {
      case .publisher(let session): session.stream
      case .viewer(let session): session.stream
      }
    }
  }

  private var all: [Session] { streams.publisherSessions.map(Session.publisher) + viewers.sessions.map(Session.viewer) }

  private func find(_ id: SessionID) -> Session? {
    switch id.kind {
    case .publisher: streams.publisherSessions.first { $0.id == id }.map(Session.publisher)
    case .viewer: viewers.session(id).map(Session.viewer)
    }
  }

  private func answer(_ session: Session) -> SessionAnswer {
    switch session {
    case .publisher(let session): SessionAnswer(session)
    case .viewer(let session): SessionAnswer(session, since: clock.reading.wallTime(at: session.since))
    }
  }

  private func onThread(_ request: APIRequest, _ body: @escaping @Sendable () -> HTTPResponse) -> HTTPAnswer {
    .later(NIOSingletons.posixBlockingThreadPool.runIfActive(eventLoop: request.eventLoop, body))
  }

  private static let missing = Problem(
    .noSuchSession, "There is no such session.", help: "See /api/v1/sessions."
  ).response
}

/// `/api/v1/version`
struct VersionAnswer: APIObject {
  let version: String
}

package import Answers
internal import Base
internal import Delivery
internal import FMP4
internal import HTTP
internal import Publishing
internal import Streams
internal import NIOCore
internal import NIOPosix

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

/// `/api/v1/sessions`
package struct SessionsAnswer: APIObject, PagedAnswer {
  package private(set) var sessions: [SessionAnswer]
  let viewers: [String: Int]
  package private(set) var next: String?

  package static let notes: [String: FieldNote] = [
    "sessions": "A page of publishers, and viewers whose responses have no end.",
    "viewers": "The number of all viewers of each stream that has any.",
    "next": "`after` of the next page; null on the last one.",
  ]

  init(sessions: [SessionAnswer], viewers: [String: Int], next: String?) {
    (self.sessions, self.viewers, self.next) = (sessions, viewers, next)
  }

  package mutating func append(_ page: SessionsAnswer) {
    sessions += page.sessions
    next = page.next
  }
}

/// `/api/v1/sessions/{session}`
package struct SessionAnswer: APIObject {
  package let id: String
  let kind: String
  package let stream: String
  package let `protocol`: String
  package let address: String?
  package let software: String?
  package let since: String
  package let bytes: Int?

  package static let notes: [String: FieldNote] = [
    "kind": .words(["publisher", "viewer"], "Who is connected."),
    "protocol": "How it is published or watched.",
    "address": "Null for the server's own sources.",
    "software": "As the publisher states it; null if it does not.",
    "since": .time("When it began."),
    "bytes": "Of coded media, from a publisher.",
  ]

  init(_ session: PublisherSession) {
    (id, kind) = (session.id.description, session.id.kind.rawValue)
    (stream, `protocol`) = (session.stream.description, session.protocolName)
    address = session.remoteAddress
    software = session.software.isEmpty ? nil : session.software
    (since, bytes) = (JSONText.time(session.since), session.bytes)
  }

  init(_ session: ViewerSession, since: WallTime) {
    (id, kind) = (session.id.description, session.id.kind.rawValue)
    (stream, `protocol`) = (session.stream.description, session.delivery.rawValue)
    (address, software, bytes) = (session.host?.hostText, nil, nil)
    self.since = JSONText.time(since)
  }
}

/// `/api/v1/version`
struct VersionAnswer: APIObject {
  let version: String
}

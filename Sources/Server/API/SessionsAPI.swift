internal import Basics
internal import FMP4
internal import HTTP
internal import Ingest
internal import NIOCore
internal import NIOPosix

/// `/api/v1/sessions`: the publishers, and the viewers whose responses have no end. Other viewers are only counted: a player of
/// HLS or DASH has no connection of its own.
struct SessionsAPI {
  let streams: StreamRegistry
  let viewers: ViewerRegistry
  let clock: SteadyClock

  /// There may be tens of thousands, so the list is made on a thread.
  func list(_ request: APIRequest) -> HTTPAnswer {
    let name = request.http.query("stream")
    return .later(
      NIOSingletons.posixBlockingThreadPool.runIfActive(eventLoop: request.eventLoop) {
        let counts = viewers.counts.streams.filter { name == nil || $0.key.description == name }
        let numbers = counts.map { ($0.key.description, $0.value.values.reduce(0, +)) }
        return .json(
          SessionsAnswer(
            sessions: all.filter { name == nil || $0.stream == name },
            viewers: Dictionary(uniqueKeysWithValues: numbers)))
      })
  }

  func one(_ request: APIRequest) -> HTTPAnswer {
    .now(all.first { $0.id == request[0] }.map { .json($0) } ?? Self.missing)
  }

  func end(_ request: APIRequest) -> HTTPAnswer {
    guard let session = all.first(where: { $0.id == request[0] }) else { return .now(Self.missing) }
    let isEnded =
      if let publisher = streams.publisherSessions.first(where: { $0.id.description == session.id }) {
        streams.stream(publisher.stream)?.endSession(publisher.id) ?? false
      } else {
        viewers.endSession(session.id)
      }
    return .now(isEnded ? .json(session) : Self.missing)
  }

  private var all: [SessionAnswer] {
    let reading = clock.reading
    return streams.publisherSessions.map(SessionAnswer.init)
      + viewers.sessions.map { SessionAnswer($0, since: reading.wallTime(at: $0.since)) }
  }

  private static let missing = Problem(
    .noSuchSession, "There is no such session.", help: "See /api/v1/sessions."
  ).response
}

/// `/api/v1/sessions`
struct SessionsAnswer: APIObject {
  let sessions: [SessionAnswer]
  let viewers: [String: Int]

  static let notes: [String: FieldNote] = [
    "sessions": "Publishers, and viewers whose responses have no end.",
    "viewers": "The number of all viewers of each stream that has any.",
  ]
}

/// `/api/v1/sessions/{session}`
struct SessionAnswer: APIObject {
  let id: String
  let kind: String
  let stream: String
  let `protocol`: String
  let address: String?
  let software: String?
  let since: String
  let bytes: Int?

  static let notes: [String: FieldNote] = [
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

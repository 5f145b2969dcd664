internal import Base
package import FMP4
internal import Publishing
package import Streams

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

  package init(sessions: [SessionAnswer], viewers: [String: Int], next: String?) {
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

  package init(_ session: PublisherSession) {
    (id, kind) = (session.id.description, session.id.kind.rawValue)
    (stream, `protocol`) = (session.stream.description, session.protocolName)
    address = session.remoteAddress
    software = session.software.isEmpty ? nil : session.software
    (since, bytes) = (JSONText.time(session.since), session.bytes)
  }

  package init(_ session: ViewerSession, since: WallTime) {
    (id, kind) = (session.id.description, session.id.kind.rawValue)
    (stream, `protocol`) = (session.stream.description, session.delivery.rawValue)
    (address, software, bytes) = (session.host?.hostText, nil, nil)
    self.since = JSONText.time(since)
  }
}

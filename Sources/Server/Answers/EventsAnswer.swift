package import Control

/// `/api/v1/events` as a page. The server writes its text from those of the events (`Event.json`).
package struct EventsAnswer: APIObject {
  let durable: Bool
  package let events: [EventAnswer]
  package let gap: Gap?
  package let more: Bool
  package let next: Int64

  package struct Gap: APIObject {
    package let after: Int64
    package let from: Int64
  }

  package static let notes: [String: FieldNote] = [
    "durable": "Whether events outlive the process (--state).",
    "events": "Oldest first.",
    "gap": "Events behind `after` that are not kept any more.",
    "more": "Whether there are more behind this page.",
    "next": "`after` of the next page.",
  ]
}

package struct EventAnswer: APIObject {
  package let id: Int64
  package let kind: String
  package let stream: String?
  package let who: String?
  package let at: String
  package let data: EventValue

  package static let notes: [String: FieldNote] = [
    "kind": .words(EventKinds.words, "What happened."),
    "who": "An address, `control socket` or `SIGHUP`; null for the server itself.",
    "at": .time("When it happened."),
    "data": "What the API tells of the subject, by kind.",
  ]
}

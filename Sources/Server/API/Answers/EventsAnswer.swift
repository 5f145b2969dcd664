/// `/api/v1/events` as a page. The server writes its text from those of the events (`Event.json`).
struct EventsAnswer: APIObject {
  let durable: Bool
  let events: [EventAnswer]
  let gap: Gap?
  let more: Bool
  let next: Int64

  struct Gap: APIObject {
    let after: Int64
    let from: Int64
  }

  static let notes: [String: FieldNote] = [
    "durable": "Whether events outlive the process (--state).",
    "events": "Oldest first.",
    "gap": "Events behind `after` that are not kept any more.",
    "more": "Whether there are more behind this page.",
    "next": "`after` of the next page.",
  ]
}

struct EventAnswer: APIObject {
  let id: Int64
  let kind: String
  let stream: String?
  let who: String?
  let at: String
  let data: EventValue

  static let notes: [String: FieldNote] = [
    "kind": .words(EventKinds.words, "What happened."),
    "who": "An address, `control socket` or `SIGHUP`; null for the server itself.",
    "at": .time("When it happened."),
    "data": "What the API tells of the subject, by kind.",
  ]
}

package import Control

/// `/api/v1/events/deliveries`
package struct DeliveriesAnswer: APIObject {
  let deliveries: [Delivery]
  let hooks: [Hook]

  package init(deliveries: [Delivery], hooks: [Hook]) {
    (self.deliveries, self.hooks) = (deliveries, hooks)
  }

  package struct Hook: APIObject {
    let name: String
    let target: String
    let deliveredThrough: Int64
    let waiting: Int

    package static let notes: [String: FieldNote] = [
      "target": "An address without its query, or a program.",
      "deliveredThrough": "Everything up to this event is done.",
      "waiting": "Events that were read and are not done. Of a stream that is held up it is one.",
    ]

    package init(_ status: Hooks.Status) {
      (name, target, deliveredThrough, waiting) = (status.name, status.target, status.position, status.waiting)
    }
  }

  package struct Delivery: APIObject {
    let hook: String
    let event: Int64?
    let kind: String?
    let attempt: Int
    let at: String
    let milliseconds: Int64
    let done: Bool
    let outcome: String
    let nextAt: String?

    package static let notes: [String: FieldNote] = [
      "event": "Its id; null for a note that concerns several.",
      "attempt": "From 1.",
      "at": .time("When it began."),
      "outcome": "A status, an exit status, or why there was none.",
      "nextAt": .time("When it is tried again; null if it is not."),
    ]

    package init(_ attempt: HookDeliveries.Attempt) {
      (hook, event, kind) = (attempt.hook, attempt.event, attempt.kind?.rawValue)
      (self.attempt, at, milliseconds) = (attempt.number, JSONText.time(attempt.at), attempt.milliseconds)
      (done, outcome, nextAt) = (attempt.isDone, attempt.outcome, attempt.next.map(JSONText.time))
    }
  }
}

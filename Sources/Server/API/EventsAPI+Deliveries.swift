internal import HTTP

/// `/api/v1/events/deliveries`: the hooks, and their latest attempts, the newest first.
extension EventsAPI {
  var listDeliveries: HTTPAnswer {
    .now(
      .json(
        DeliveriesAnswer(
          deliveries: hooks.deliveries.all.reversed().map(DeliveriesAnswer.Delivery.init),
          hooks: hooks.status.map(DeliveriesAnswer.Hook.init))))
  }
}

private struct DeliveriesAnswer: Encodable {
  let deliveries: [Delivery]
  let hooks: [Hook]

  struct Hook: Encodable {
    let name: String
    /// An address without its query, or a program.
    let target: String
    /// Everything up to this event is done.
    let deliveredThrough: Int64
    /// Events that were read and are not done.
    let waiting: Int

    init(_ status: Hooks.Status) {
      (name, target, deliveredThrough, waiting) = (status.name, status.target, status.position, status.waiting)
    }
  }

  struct Delivery: Encodable {
    let hook: String
    let event: Int64?
    let kind: String?
    let attempt: Int
    let at: String
    let milliseconds: Int64
    let done: Bool
    let outcome: String
    let nextAt: String?

    init(_ attempt: HookDeliveries.Attempt) {
      (hook, event, kind) = (attempt.hook, attempt.event, attempt.kind?.rawValue)
      (self.attempt, at, milliseconds) = (attempt.number, JSONText.time(attempt.at), attempt.milliseconds)
      (done, outcome, nextAt) = (attempt.isDone, attempt.outcome, attempt.next.map(JSONText.time))
    }
  }
}

internal import Answers
internal import Control
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

internal import FMP4
internal import NIOCore
internal import NIOHTTP1

/// An event as a request, after Standard Webhooks 1.0.0. The status decides whether it was taken.
struct WebhookRequest: Sendable {
  private let request: OutgoingRequest

  init(_ event: Event, to url: String, _ secret: WebhookSecret?, now: WallTime) {
    let (id, body) = ("evt_\(event.id)", event.json)
    var fields = [
      (name: "Content-Type", value: "application/json"), ("webhook-id", id), ("webhook-timestamp", "\(now.seconds)"),
    ]
    if let secret {
      fields.append(("webhook-signature", secret.signature(id: id, seconds: now.seconds, body: body)))
    }
    request = OutgoingRequest(method: .POST, url: url, fields: fields, body: ByteBuffer(string: body))
  }

  func send() async -> HookOutcome {
    do throws(OutgoingRequest.Failure) {
      let status = try await request.send().status
      if (200..<300).contains(status) { return .done("\(status)") }
      return .failed((300..<400).contains(status) ? "\(status), and redirections are not followed" : "\(status)")
    } catch {
      return Task.isCancelled ? .interrupted : .failed(error.description)
    }
  }
}

internal import NIOCore
internal import NIOHTTP1

/// Parts of pipelined requests that arrived before their turn.
struct WaitingParts {
  /// An object, since most connections never have any.
  private final class Content {
    var parts = CircularBuffer<RequestPart>(initialCapacity: 1)
    var requests = 0
    var refusal: Problem?
  }

  private var content: Content?

  /// The response to the client's fault, after those to the requests before it.
  var refusal: Problem? { content?.refusal }

  var isEmpty: Bool { content?.parts.isEmpty ?? true }

  /// Adds a part. More than `limit` requests are a fault; parts after a fault are dropped.
  mutating func append(_ part: RequestPart, limit: Int) {
    let content = used()
    guard content.refusal == nil else { return }
    if case .head = part {
      guard content.requests < limit else {
        refuse(
          Problem(
            .tooManyWaiting, "One connection may have at most \(limit) waiting requests."))
        return
      }
      content.requests += 1
    }
    content.parts.append(part)
  }

  /// Records a fault of the client; only the first one counts.
  mutating func refuse(_ problem: Problem) {
    let content = used()
    content.refusal = content.refusal ?? problem
  }

  mutating func next() -> RequestPart? {
    guard let content else { return nil }
    let part = content.parts.popFirst()
    if case .head = part { content.requests -= 1 }
    if content.parts.isEmpty, content.refusal == nil { self.content = nil }
    return part
  }

  mutating func removeAll() { content = nil }

  private mutating func used() -> Content {
    if let content { return content }
    let new = Content()
    content = new
    return new
  }
}

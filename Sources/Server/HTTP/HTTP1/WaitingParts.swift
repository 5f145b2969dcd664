internal import NIOCore
internal import NIOHTTP1

/// Parts of pipelined requests that arrived before their turn.
struct WaitingParts {
  private var parts = CircularBuffer<RequestPart>(initialCapacity: 1)
  private var requests = 0
  /// The response to the client's fault, after those to the requests before it.
  private(set) var refusal: Problem?

  var isEmpty: Bool { parts.isEmpty }

  /// Adds a part. More than `limit` requests are a fault; parts after a fault are dropped.
  mutating func append(_ part: RequestPart, limit: Int) {
    guard refusal == nil else { return }
    if case .head = part {
      guard requests < limit else {
        refuse(
          Problem(
            .tooManyWaiting, "One connection may have at most \(limit) waiting requests."))
        return
      }
      requests += 1
    }
    parts.append(part)
  }

  /// Records a fault of the client; only the first one counts.
  mutating func refuse(_ problem: Problem) { refusal = refusal ?? problem }

  mutating func next() -> RequestPart? {
    let part = parts.popFirst()
    if case .head = part { requests -= 1 }
    return part
  }

  mutating func removeAll() {
    parts.removeAll()
    requests = 0
    refusal = nil
  }
}

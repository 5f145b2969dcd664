internal import NIOCore
internal import NIOHTTP1

/// Parts of pipelined requests that came before their turn.
struct WaitingParts {
  private var parts = CircularBuffer<RequestPart>(initialCapacity: 1)
  private var requests = 0
  /// What the peer is told once the requests before its fault are answered.
  private(set) var refusal: Problem?

  var isEmpty: Bool { parts.isEmpty }

  /// More than `limit` requests are a fault; what follows a fault is dropped.
  mutating func append(_ part: RequestPart, limit: Int) {
    guard refusal == nil else { return }
    if case .head = part {
      guard requests < limit else {
        refuse(
          Problem(
            status: .tooManyRequests, title: "Too many requests at once",
            detail: "One connection may have \(limit) requests waiting."))
        return
      }
      requests += 1
    }
    parts.append(part)
  }

  /// The peer has made a fault; its first one counts.
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

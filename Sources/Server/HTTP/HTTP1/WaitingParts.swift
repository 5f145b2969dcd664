internal import NIOCore
internal import NIOHTTP1

/// Parts of pipelined requests that arrived before their turn.
struct WaitingParts {
  /// Nil while there are none: most connections never have any.
  private var parts: CircularBuffer<RequestPart>?
  private var requests = 0
  /// The response to the client's fault, after those to the requests before it.
  private(set) var refusal: Problem?

  var isEmpty: Bool { parts == nil }

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
    if parts == nil { parts = CircularBuffer(initialCapacity: 1) }
    parts?.append(part)
  }

  /// Records a fault of the client; only the first one counts.
  mutating func refuse(_ problem: Problem) { refusal = refusal ?? problem }

  mutating func next() -> RequestPart? {
    let part = parts?.popFirst()
    if parts?.isEmpty == true { parts = nil }
    if case .head = part { requests -= 1 }
    return part
  }

  mutating func removeAll() {
    parts = nil
    requests = 0
    refusal = nil
  }
}

internal import Base

/// Limits the events that peers can cause. Of one kind and subject the first few in a span become events, and of one kind. The
/// next event says how many were left out.
struct EventRate: Sendable {
  /// Nanoseconds.
  static let span: Int64 = 60_000_000_000
  /// The most remembered subjects.
  static let capacity = 1024

  private struct Count {
    var start: MonotonicTime
    var taken = 0

    mutating func takes(_ limit: Int, _ now: MonotonicTime) -> Bool {
      if now &- start >= EventRate.span { (start, taken) = (now, 0) }
      guard taken < limit else { return false }
      taken += 1
      return true
    }
  }

  private struct Subject: Hashable {
    let kind: EventKind
    let name: String
  }

  private var subjects: [Subject: Count] = [:]
  /// By kind and cause.
  private var kinds: [Subject: Count] = [:]
  private var leftOut: [EventKind: Int] = [:]

  /// Nil if this is not to become an event. Otherwise how many of the kind were left out before it.
  ///
  /// - Parameter cause: one of few texts. Those of one cause leave those of another their events.
  mutating func takes(_ kind: EventKind, of name: String, because cause: String = "", now: MonotonicTime) -> Int? {
    guard kind.isLimited else { return 0 }
    let subject = Subject(kind: kind, name: cause + name)
    if subjects.count >= Self.capacity, subjects[subject] == nil {
      subjects = subjects.filter { now &- $0.value.start < Self.span }
      if subjects.count >= Self.capacity { subjects = [:] }
    }
    guard subjects[subject, default: Count(start: now)].takes(kind.burst.ofSubject, now),
      kinds[Subject(kind: kind, name: cause), default: Count(start: now)].takes(kind.burst.ofAll, now)
    else {
      leftOut[kind, default: 0] &+= 1
      return nil
    }
    return leftOut.removeValue(forKey: kind) ?? 0
  }

  /// Some were left out, and nothing has told so yet.
  var hasLeftOut: Bool { !leftOut.isEmpty }

  /// The kinds of which some were left out, and none came for a span; with how many.
  mutating func overdue(now: MonotonicTime) -> [EventKind: Int] {
    guard !leftOut.isEmpty else { return [:] }
    let over = leftOut.filter { kind, _ in
      kinds.allSatisfy { $0.key.kind != kind || now &- $0.value.start >= Self.span }
    }
    for kind in over.keys { leftOut[kind] = nil }
    return over
  }
}

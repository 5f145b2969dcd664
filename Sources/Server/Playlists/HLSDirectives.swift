internal import Base
internal import FMP4
package import Streams

/// The delivery directives in the query of a media playlist (RFC 8216bis §6.2.5): blocking reload, and delta updates.
package struct HLSDirectives: Equatable, Sendable {
  /// The response waits until the playlist contains this, or something later. Nil: respond at once.
  package var goal: Goal?
  /// `_HLS_skip`: the client accepts a delta update, without the segments that it already knows.
  package var skips = false

  /// What a blocking reload waits for.
  package enum Goal: Hashable, Sendable, CustomStringConvertible {
    /// `_HLS_msn` and `_HLS_part`.
    case part(PartPosition)
    /// `_HLS_msn` alone: the whole segment.
    case segment(Int)

    /// The media sequence number.
    var segment: Int {
      switch self {
      case .part(let position): position.segment
      case .segment(let number): number
      }
    }

    package var description: String {
      switch self {
      case .part(let position): "Segment \(position.segment), part \(position.part),"
      case .segment(let number): "Segment \(number)"
      }
    }

    /// The same in numbers of segments, of which Media Sequence Numbers are `offset` higher.
    package func lower(by offset: Int) -> Goal {
      switch self {
      case .part(let position): .part(PartPosition(segment: max(0, position.segment - offset), part: position.part))
      case .segment(let number): .segment(max(0, number - offset))
      }
    }

    /// The condition in the wait queue.
    package func condition(_ rendition: Rendition, epoch: String) -> WaitQueue.Condition {
      switch self {
      case .part(let position): .part(position, rendition, epoch: epoch)
      case .segment(let number): .segment(number, rendition, epoch: epoch)
      }
    }
  }

  /// An invalid directive; the response is 400.
  package struct Malformed: Error, Equatable {
    package var detail: String
  }

  /// `value` returns the query's value of a name.
  package init(_ value: (String) -> String?) throws(Malformed) {
    let part = try Self.number("_HLS_part", value)
    if let segment = try Self.number("_HLS_msn", value) {
      goal = part.map { .part(PartPosition(segment: segment, part: $0)) } ?? .segment(segment)
    } else if part != nil {
      throw Malformed(detail: "_HLS_part needs _HLS_msn.")
    }
    switch value("_HLS_skip") {
    case "YES", "v2": skips = true
    default: break
    }
  }

  private static func number(_ name: String, _ value: (String) -> String?) throws(Malformed) -> Int? {
    guard let text = value(name) else { return nil }
    guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
      let number = Int(text)
    else { throw Malformed(detail: "\(name) is a whole number, not \(LogText.escaped(String(text.prefix(40)))).") }
    return number
  }

  // MARK: When to respond

  package enum Verdict: Equatable {
    case now
    /// When the goal is reached.
    case wait
    /// Too far ahead, so the client is in error: 400 at once (§6.2.5.2).
    case tooFar
  }

  /// When to respond, by the state of the window.
  package func verdict(_ window: LiveWindow, _ rendition: Rendition) -> Verdict {
    guard let goal, !window.isEnded else { return .now }
    if window.hasReached(goal, in: rendition) { return .now }
    let edge = window.edge(of: rendition)
    // The edge lies in the segment in the making. A client may wait for that one or the next.
    if goal.segment > edge.segment + 1 { return .tooFar }
    guard case .part(let position) = goal else { return .wait }
    // Parts of the goal's segment that exist.
    let known = position.segment == edge.segment ? edge.part : 0
    return position.part - known > advanceLimit(window) ? .tooFar : .wait
  }

  /// The Advance Part Limit (§6.2.5.2): how many parts ahead a client may ask. Three seconds of parts that are shorter than one
  /// second, else three.
  private func advanceLimit(_ window: LiveWindow) -> Int {
    guard let target = window.partTarget?.seconds, target > 0, target < 1 else { return 3 }
    return Int((3 / target).rounded(.up))
  }
}

extension LiveWindow {
  /// Whether the rendition's playlist contains the goal, or something later.
  package func hasReached(_ goal: HLSDirectives.Goal, in rendition: Rendition) -> Bool {
    switch goal {
    case .part(let position): hasReached(position, in: rendition)
    case .segment(let number): hasReached(segment: number, in: rendition)
    }
  }
}

internal import NIOCore
internal import Storage

/// The segments of which a recorder's queue keeps something in memory, oldest first, and what they take of the budget.
///
/// A segment's bytes are one file in memory, which goes with the last of its parts. While the live window has the
/// segment it is there anyway, and only what waits of it counts. Once it has left the window all of it counts, also
/// what has been written already and what was never to be recorded: all of it is kept for the queue alone.
struct SegmentMemoryCharge {
  private struct Segment {
    var number: Int
    /// Fragments that wait or are being written.
    var parts = 0
    /// Bytes of those.
    var waiting = 0
    /// Bytes of the whole segment, as far as it is known to have come.
    var size = 0
    var place = Place.window
    /// What of the budget it has taken.
    var charged = 0
  }

  private enum Place {
    /// Viewers may ask for it.
    case window
    /// Nobody else needs it.
    case queue
  }

  private let budget: RecordingBudget
  private var segments = CircularBuffer<Segment>()

  init(budget: RecordingBudget) {
    self.budget = budget
  }

  /// The number of the newest; nil when nothing is kept.
  var newest: Int? { segments.last?.number }

  /// Keeps a fragment of the newest segment. False when there is no room for it; its segment grows all the same.
  mutating func take(_ fragment: PublishedFragment) -> Bool {
    let isTaken = budget.take(fragment.range.length)
    if isTaken, segments.last?.number != fragment.sequenceNumberOfSegment {
      segments.append(Segment(number: fragment.sequenceNumberOfSegment))
    }
    passOver(fragment)
    guard isTaken, let last = segments.indices.last else { return false }
    segments[last].parts += 1
    segments[last].waiting += fragment.range.length
    segments[last].charged += fragment.range.length
    return true
  }

  /// A fragment is not kept, but lies in memory behind others of its segment.
  mutating func passOver(_ fragment: PublishedFragment) {
    guard let last = segments.indices.last, segments[last].number == fragment.sequenceNumberOfSegment else { return }
    segments[last].size = fragment.range.offset + fragment.range.length
  }

  /// A fragment that was taken is not needed any more.
  mutating func release(_ fragment: PublishedFragment) {
    guard let index = segments.firstIndex(where: { $0.number == fragment.sequenceNumberOfSegment }) else { return }
    segments[index].parts -= 1
    segments[index].waiting -= fragment.range.length
    settle(index)
    if segments[index].parts == 0 { segments.remove(at: index) }
  }

  /// The live window has nothing before that segment any more.
  mutating func leaveWindow(before number: Int) {
    for index in segments.indices where segments[index].number < number && segments[index].place == .window {
      segments[index].place = .queue
      settle(index)
    }
  }

  /// Brings what a segment has taken of the budget to what it is to take. What is in memory cannot be refused.
  private mutating func settle(_ index: CircularBuffer<Segment>.Index) {
    let segment = segments[index]
    let due =
      switch segment.place {
      case _ where segment.parts == 0: 0
      case .window: segment.waiting
      case .queue: segment.size
      }
    budget.give(segment.charged - due)
    segments[index].charged = due
  }
}

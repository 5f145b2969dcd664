internal import NIOCore
internal import Storage
internal import Streams

/// The segments of which a recorder's queue keeps something in memory, oldest first, and what each is charged to the budget.
///
/// The bytes of a segment are one file in memory. It is freed with the last reference to any part of it. While the live window
/// contains the segment, the memory is in use anyway, and only the waiting fragments are charged. After the segment has left the
/// window, all of it is charged: also what has been written and what was never to be recorded. The queue alone keeps it then.
struct SegmentMemoryCharge {
  private struct Segment {
    var number: Int
    /// Fragments that wait or are being written.
    var parts = 0
    /// Bytes of those fragments.
    var waiting = 0
    /// Bytes of the whole segment that are known so far.
    var size = 0
    var place = Place.window
    /// Bytes charged to the budget.
    var charged = 0
  }

  private enum Place {
    /// In the live window, available to viewers.
    case window
    /// Only the queue needs it.
    case queue
  }

  private let budget: RecordingBudget
  private var segments = CircularBuffer<Segment>()

  init(budget: RecordingBudget) {
    self.budget = budget
  }

  /// Number of the newest segment; nil if none is kept.
  var newest: Int? { segments.last?.number }

  /// Keeps a fragment of the newest segment. False if there is no room for it; the known size of its segment grows in either
  /// case.
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

  /// The fragment is not kept, but it lies in memory with the others of its segment.
  mutating func passOver(_ fragment: PublishedFragment) {
    guard let last = segments.indices.last, segments[last].number == fragment.sequenceNumberOfSegment else { return }
    segments[last].size = fragment.range.offset + fragment.range.length
  }

  /// A fragment that was taken is no longer needed.
  mutating func release(_ fragment: PublishedFragment) {
    guard let index = segments.firstIndex(where: { $0.number == fragment.sequenceNumberOfSegment }) else { return }
    segments[index].parts -= 1
    segments[index].waiting -= fragment.range.length
    settle(index)
    if segments[index].parts == 0 { segments.remove(at: index) }
  }

  /// The live window now begins with that segment.
  mutating func leaveWindow(before number: Int) {
    for index in segments.indices where segments[index].number < number && segments[index].place == .window {
      segments[index].place = .queue
      settle(index)
    }
  }

  /// Adjusts the charge of a segment to its present state. Memory that is in use already cannot be refused.
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

internal import Basics
internal import Ingest
internal import Storage

/// What streams take of the descriptors that there are.
struct StreamDescriptors: Sendable {
  let budget: DescriptorBudget
  /// What else than its publisher and its memory takes descriptors of a stream: recordings, folders of segments.
  let sinks: Int
  let ladders: LadderProfiles
  let audioProfiles: AudioProfiles
  /// Segments of a window.
  let segmentLimit: Int
  /// Whether one file holds the segments of a stream, as is usual.
  var sharesMemory = SegmentStore.canShare
  /// Bounds what has left its window and is still being sent.
  var leftovers: LeftoverBudget?

  /// What a stream that is to come has taken.
  struct Reservation: Sendable {
    fileprivate let budget: DescriptorBudget
    /// Those of its memory are given back when it is closed: viewers may read for longer than there is the stream.
    let store: SegmentStore
    fileprivate let others: Int

    /// It does not come.
    func giveBack() { budget.giveBackStream(others) }
  }

  /// Nil where there are not so many, even without viewers.
  func reserve(_ stream: StreamName) -> Reservation? {
    let memory = memory(of: stream)
    guard budget.takeStream(count(of: stream)) else { return nil }
    let store = SegmentStore(name: SegmentStore.ofStreams, leftovers: leftovers) { [budget] in
      budget.giveBackStream(memory)
    }
    return Reservation(budget: budget, store: store, others: count(of: stream) - memory)
  }

  /// The stream is forgotten.
  func giveBack(_ stream: StreamName) { budget.giveBackStream(count(of: stream) - memory(of: stream)) }

  /// All of a stream as it is configured.
  func count(of stream: StreamName) -> Int {
    let workers = (ladders[stream].isEmpty ? 0 : 1) + (audioProfiles[stream] == nil ? 0 : 1)
    return DescriptorBudget.perStream - 1 + memory(of: stream) + DescriptorBudget.perSink * (sinks + workers)
  }

  /// Of the window of the source, and of each rung.
  private func memory(of stream: StreamName) -> Int {
    sharesMemory ? 1 : segmentLimit * (1 + ladders[stream].count + (audioProfiles[stream] == nil ? 0 : 1))
  }

  /// Streams without a ladder that there can be at a time.
  var capacity: Int {
    let memory = sharesMemory ? 1 : segmentLimit
    return budget.streams / (DescriptorBudget.perStream - 1 + memory + DescriptorBudget.perSink * sinks)
  }

  /// Why a stream is refused, beside so many.
  func refusal(beside streams: Int) -> PublishRefusal {
    .noRoom(
      "the server has no descriptors for another stream: \(budget.limit) may be open (ulimit -n, or LimitNOFILE of systemd),"
        + " and it has \(streams) streams; raise the limit, or end streams")
  }
}

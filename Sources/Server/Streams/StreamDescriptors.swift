internal import Basics
internal import Ingest
internal import Storage

/// The file descriptors that streams use.
struct StreamDescriptors: Sendable {
  let budget: DescriptorBudget
  /// Sinks of each stream that use descriptors, beside publisher and memory: recordings, segment folders.
  let sinks: Int
  let ladders: LadderProfiles
  let audioProfiles: AudioProfiles
  /// The most segments in a window.
  let segmentLimit: Int
  /// Whether one file holds all segments of a stream, as is usual.
  var sharesMemory = SegmentStore.canShare
  /// Limits segments that have left their window and are still sent.
  var leftovers: LeftoverBudget?

  /// The descriptors of a stream that is about to start.
  struct Reservation: Sendable {
    fileprivate let budget: DescriptorBudget
    /// Gives the descriptors of its memory back when it is closed: viewers may read longer than the stream exists.
    let store: SegmentStore
    fileprivate let others: Int

    /// Gives the others back when the stream does not start.
    func giveBack() { budget.giveBackStream(others) }
  }

  /// Nil when there are too few, even without viewers.
  func reserve(_ stream: StreamName) -> Reservation? {
    let memory = memory(of: stream)
    guard budget.takeStream(count(of: stream)) else { return nil }
    let store = SegmentStore(name: SegmentStore.ofStreams, leftovers: leftovers) { [budget] in
      budget.giveBackStream(memory)
    }
    return Reservation(budget: budget, store: store, others: count(of: stream) - memory)
  }

  /// Gives the descriptors of a removed stream back.
  func giveBack(_ stream: StreamName) { budget.giveBackStream(count(of: stream) - memory(of: stream)) }

  /// All descriptors of a stream as configured.
  func count(of stream: StreamName) -> Int {
    let workers = (ladders[stream].isEmpty ? 0 : 1) + (audioProfiles[stream] == nil ? 0 : 1)
    return DescriptorBudget.perStream - 1 + memory(of: stream) + DescriptorBudget.perSink * (sinks + workers)
  }

  /// The descriptors of the window of the source and of each rung.
  private func memory(of stream: StreamName) -> Int {
    sharesMemory ? 1 : segmentLimit * (1 + ladders[stream].count + (audioProfiles[stream] == nil ? 0 : 1))
  }

  /// The most streams without a ladder at a time.
  var capacity: Int {
    let memory = sharesMemory ? 1 : segmentLimit
    return budget.streams / (DescriptorBudget.perStream - 1 + memory + DescriptorBudget.perSink * sinks)
  }

  /// The refusal of a stream when there are `streams` already.
  func refusal(beside streams: Int) -> PublishRefusal {
    .noRoom(
      "the server has no file descriptors for another stream: \(budget.limit) may be open (ulimit -n, or LimitNOFILE of systemd),"
        + " and it has \(streams) streams; raise the limit, or end streams")
  }
}

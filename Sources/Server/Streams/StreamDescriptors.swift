package import Base
internal import Publishing
package import Storage

/// The file descriptors that streams use.
package struct StreamDescriptors: Sendable {
  package let budget: DescriptorBudget
  /// Sinks of each stream that use descriptors, beside publisher and memory: recordings, segment folders.
  package let sinks: Int
  /// Whether one file holds all segments of a stream, as is usual.
  var sharesMemory = SegmentStore.canShare
  /// Limits segments that have left their window and are still sent.
  var leftovers: LeftoverBudget?

  package init(
    budget: DescriptorBudget, sinks: Int, sharesMemory: Bool = SegmentStore.canShare, leftovers: LeftoverBudget? = nil
  ) {
    (self.budget, self.sinks, self.sharesMemory, self.leftovers) = (budget, sinks, sharesMemory, leftovers)
  }

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
  func reserve(_ settings: StreamSettings) -> Reservation? {
    let (memory, count) = (memory(of: settings), count(of: settings))
    guard budget.takeStream(count) else { return nil }
    let store = SegmentStore(name: SegmentStore.ofStreams, leftovers: leftovers) { [budget] in
      budget.giveBackStream(memory)
    }
    return Reservation(budget: budget, store: store, others: count - memory)
  }

  /// Gives the descriptors of a removed stream back.
  func giveBack(_ settings: StreamSettings) { budget.giveBackStream(countAtOnce(of: settings)) }

  /// Those that are free once a stream is removed, without its memory.
  func countAtOnce(of settings: StreamSettings) -> Int { count(of: settings) - memory(of: settings) }

  /// Changes what a stream holds, but for its memory, which it keeps. False when there are too few.
  func exchange(_ former: StreamSettings, for next: StreamSettings) -> Bool {
    let more = workers(of: next) - workers(of: former)
    if more < 0 { budget.giveBackStream(-more) }
    return more <= 0 || budget.takeStream(more)
  }

  /// All descriptors of a stream with these settings.
  func count(of settings: StreamSettings) -> Int {
    DescriptorBudget.perStream - 1 + memory(of: settings) + DescriptorBudget.perSink * sinks + workers(of: settings)
  }

  /// The descriptors of the workers of the ladder and the audio, and of the time-shift buffer.
  private func workers(of settings: StreamSettings) -> Int {
    DescriptorBudget.perSink
      * ((settings.ladder.isEmpty ? 0 : 1) + (settings.audio == nil ? 0 : 1) + (settings.rewind == nil ? 0 : 1))
  }

  /// The descriptors of the window of the source and of each rung.
  private func memory(of settings: StreamSettings) -> Int {
    sharesMemory ? 1 : settings.segmentLimit * (1 + settings.ladder.count + (settings.audio == nil ? 0 : 1))
  }

  /// The most streams with these settings at a time.
  package func capacity(of settings: StreamSettings) -> Int { budget.streams / count(of: settings) }

  /// The refusal of a stream when there are `streams` already.
  func refusal(beside streams: Int) -> PublishRefusal {
    .noRoom(
      "the server has no file descriptors for another stream: \(budget.limit) may be open (ulimit -n, or LimitNOFILE of systemd),"
        + " and it has \(streams) streams; raise the limit, or end streams")
  }
}

extension DescriptorBudget {
  /// Room for workers that become necessary while a stream runs.
  var roomForWorkers: WorkerRoom {
    WorkerRoom(
      take: { _, _ in self.takeStream(Self.perSink) ? nil : .descriptors },
      giveBack: { _, _ in self.giveBackStream(Self.perSink) })
  }
}

/// Measures the usual frame duration of a variable rate.
struct VariableRate: Sendable {
  private var durations: [UInt32] = []
  private var runs = 0
  private var longest = MediaTime.zero

  /// The first fragment of the stream is short. After the second one a quarter of a second has come.
  private static let enoughRuns = 2

  /// Takes a fragment's frames. Once enough are known, returns the median of their durations and the longest fragment.
  mutating func learn(_ run: TrackRun, endsSegment: Bool) -> (usual: MediaTime, longest: MediaTime)? {
    durations += run.samples.map(\.duration)
    runs += 1
    longest = max(longest, MediaTime(ticks: run.duration, timescale: run.timescale))
    guard runs >= Self.enoughRuns || endsSegment, !durations.isEmpty else { return nil }
    return (MediaTime(ticks: Int64(durations.sorted()[durations.count / 2]), timescale: run.timescale), longest)
  }
}

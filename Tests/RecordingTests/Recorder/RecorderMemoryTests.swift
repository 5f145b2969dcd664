import FMP4
import Recording
import RecordingFiles
import RecordingSupport
import Storage
import Streams
import Support
import Testing

/// What a disk that does not answer costs in memory, by what the kernel says of it.
@Suite struct RecorderMemoryTests {
  /// A segment's memory is one piece: while a fragment of it waits all of it is there, also what has been written, what
  /// came before a group that recording went on with, and what found no room.
  @Test func whatWaitsForAFrozenDiskKeeps64MiBOfSegmentsThatNothingElseHolds() async throws {
    let limit = 64 << 20
    // What other tests of this process have left is given back by other threads.
    var before = MediaMemory.bytes
    while true {
      try await Task.sleep(for: .milliseconds(200))
      if MediaMemory.bytes == before { break }
      before = MediaMemory.bytes
    }
    let harness = try RecordingHarness(
      try TemporaryFolder(.memory), window: MediaTime(milliseconds: 6000))
    try harness.startPublication([try SyntheticMedia.video()])
    var next = 0
    var most = 0
    /// Frames of 3 MB a second in groups of a second; segments have two of them.
    func send(_ count: Int) throws {
      for _ in 0..<count {
        try harness.receive(.sample(SyntheticMedia.frame(next, group: 30, size: 100_000)))
        next += 1
        guard next % 6 == 0 else { continue }
        let window = harness.window.segments.reduce(0) { $0 + $1.memory.byteCount }
        let kept = MediaMemory.bytes - before - window
        most = max(most, kept)
        #expect(kept <= limit + (1 << 20), "after \(next) frames")
        #expect(harness.library.overview.queuedBytes <= limit)
      }
    }
    // It freezes in the midst of a segment each time, and answers again in the midst of another.
    for (usual, frozen) in [(165, 1095), (225, 940), (75, 1230)] {
      try send(usual)
      try await harness.settle()
      let thaw = try harness.freezeDisk()
      try send(frozen)
      #expect(harness.recorder.warning != nil)
      thaw()
      try await harness.settle()
      #expect(harness.library.overview.queuedBytes == 0)
    }
    try send(120)
    try await harness.end()
    #expect(most > limit * 3 / 4, "it waits for as much as may be")
    let stored = harness.events.all.filter { $0.kind == .stored }
    let gaps = stored.flatMap(\.facts.gaps)
    let recorded = try harness.folder.files.reduce(0) { sum, file in
      sum + (try harness.sampleCounts(file).first ?? 0)
    }
    #expect(gaps.count == 3)
    #expect(abs(gaps.reduce(0) { $0 + $1.seconds } - Double(next - recorded) / 30) < 0.05, "all of it is told")
    print("a frozen disk keeps at most \(most >> 10) KiB of segments that the window does not have")
  }
}

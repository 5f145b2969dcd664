import FMP4
import Glibc
import Support
import Testing

@testable import Server

/// What a disk that does not answer costs in memory, by what the kernel says of it.
@Suite struct RecorderMemoryTests {
  /// Bytes of the segments that this process keeps in memory.
  private static var segmentBytes: Int {
    guard let listing = opendir("/proc/self/fd") else { return 0 }
    defer { closedir(listing) }
    var files: [UInt: Int] = [:]
    while let entry = readdir(listing) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      var target = [CChar](repeating: 0, count: 100)
      var status = stat()
      guard let number = CInt(name), readlink("/proc/self/fd/\(name)", &target, 99) > 0,
        String(decoding: target.map { UInt8(bitPattern: $0) }, as: UTF8.self).hasPrefix("/memfd:weir-segment"),
        fstat(number, &status) == 0
      else { continue }
      files[UInt(status.st_ino)] = Int(status.st_blocks) * 512
    }
    return files.values.reduce(0, +)
  }

  /// A segment's memory is one piece: while a fragment of it waits all of it is there, also what has been written, what
  /// came before a group that recording went on with, and what found no room.
  @Test func whatWaitsForAFrozenDiskKeeps64MiBOfSegmentsThatNobodyElseHas() async throws {
    let limit = 64 << 20
    let before = Self.segmentBytes
    let harness = try RecordingHarness(
      try TemporaryFolder(.memory), window: MediaTime(milliseconds: 6000))
    try harness.startPublication([try SyntheticMedia.video()])
    var next = 0
    var most = 0
    /// Pictures of 3 MB a second in groups of a second; segments have two of them.
    func send(_ count: Int) throws {
      for _ in 0..<count {
        try harness.receive(.sample(SyntheticMedia.picture(next, group: 30, size: 100_000)))
        next += 1
        guard next % 6 == 0 else { continue }
        let window = harness.window.segments.reduce(0) { $0 + $1.memory.byteCount }
        let kept = Self.segmentBytes - before - window
        most = max(most, kept)
        #expect(kept <= limit + (1 << 20), "after \(next) pictures")
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

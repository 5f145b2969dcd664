import FMP4
import Glibc
import Logging
import NIOCore
import Publishing
@testable import Recording
import RecordingFiles
import Storage
@testable import Streams
import Support
import Testing

@Suite struct TimeShiftBufferTests {
  /// What viewers cannot go back to any more takes no room on the disk. What they can is there.
  @Test func whatIsOutOfReachIsGivenBackToTheDisk() async throws {
    let folder = try TemporaryFolder()
    let archive = RecordingArchive(folder: nil, rewind: { _ in MediaTime(milliseconds: 1000) })
    archive.begin(epoch: "e", of: try #require(StreamName("cam")))
    let buffers = TimeShiftBuffers(
      folder: folder.path, keepFree: 0, archive: archive,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    let buffer = buffers.make(try #require(StreamName("cam")), epoch: "e")
    var epoch = Epoch(id: "e", settings: StreamSettings())
    epoch.startPublication()
    let seconds = 460
    let size = 150_000
    // One frame a second: what is kept reaches five minutes and a second back.
    for event in [.tracks([try SyntheticMedia.video(frameDuration: 30_000)])]
      + (0..<seconds).map({ index -> MediaEvent in
        .sample(SyntheticMedia.frame(index, group: 2, duration: 30_000, size: size, isSteady: true))
      })
    {
      for stored in try epoch.receive(event) { buffer.receive(stored) }
      // The queue holds 64 MiB.
      if let buffered = archive.epoch("e")?.find(1)?.source, case .sample(let sample) = event,
        sample.decodeTime % 3_000_000 == 0
      {
        try await settle(buffered, Int(sample.decodeTime / 30_000) - 10)
      }
    }
    let last = try #require(epoch.window.segments.last { $0.isComplete }).sequenceNumber
    var found: ReplaySource?
    for _ in 0..<6000 where found == nil {
      found = archive.epoch("e")?.find(last)?.source
      if found == nil { try await Task.sleep(for: .milliseconds(10)) }
    }
    let source = try #require(found)
    #expect(archive.epoch("e")?.find(1) == nil, "it is out of reach")
    var status = stat()
    #expect(fstat(source.reader.file.descriptor, &status) == 0)
    #expect(status.st_size > (seconds - 10) * size)
    let used = Int(status.st_blocks) * 512
    let reach = 301 * size
    #expect(used >= reach && used <= reach + (16 << 20) + 20 * size, "\(used) bytes on the disk")
    // The oldest that can still be asked for has its bytes.
    let index = source.withIndex { copy $0 }
    let reached = index.segments.first { index.end - index.start(of: $0) <= MediaTime(milliseconds: 301_000) }
    let oldest = try #require(reached)
    let fragments = try source.reader.read(at: oldest.offset, count: Int(oldest.length))
    #expect(fragments.readableBytesView.contains { $0 != 0 })
    #expect(try source.reader.read(at: 4096, count: 8).readableBytesView.allSatisfy { $0 == 0 }, "a hole")
  }

  /// However many streams there are.
  @Test func whatWaitsForAFrozenDiskIsBoundedForAllSpoolsTogether() async throws {
    let limit = 32 << 20
    let before = MediaMemory.bytes
    let folder = try TemporaryFolder(.memory)
    let archive = RecordingArchive(folder: nil, rewind: { _ in MediaTime(milliseconds: 600_000) })
    let budget = RecordingBudget(limit: limit)
    let buffers = TimeShiftBuffers(
      folder: folder.path, keepFree: 0, archive: archive, budget: budget,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    var settings = StreamSettings()
    settings.window = MediaTime(milliseconds: 6000)
    var streams: [(epoch: Epoch, buffer: Recorder)] = []
    for name in ["a", "b", "c"] {
      archive.begin(epoch: name, of: try #require(StreamName(name)))
      let buffer = buffers.make(try #require(StreamName(name)), epoch: name)
      var epoch = Epoch(id: name, settings: settings)
      epoch.startPublication()
      for stored in try epoch.receive(.tracks([try SyntheticMedia.video()])) { buffer.receive(stored) }
      streams.append((epoch, buffer))
    }
    var next = 0
    func send(_ count: Int) throws {
      for _ in 0..<count {
        for at in streams.indices {
          let frame = SyntheticMedia.frame(next, group: 30, size: 50_000)
          for stored in try streams[at].epoch.receive(.sample(frame)) { streams[at].buffer.receive(stored) }
        }
        next += 1
        guard next % 12 == 0 else { continue }
        let windows = streams.reduce(0) { sum, stream in
          stream.epoch.window.segments.reduce(sum) { $0 + $1.memory.byteCount }
        }
        #expect(MediaMemory.bytes - before - windows <= limit + (1 << 20), "after \(next) frames")
        #expect(budget.waiting <= limit)
      }
    }
    func settle() async throws {
      for _ in 0..<3000 where budget.waiting > 0 { try await Task.sleep(for: .milliseconds(10)) }
      #expect(budget.waiting == 0)
    }
    try send(90)
    try await settle()
    let thaw = try blockThread(of: buffers.threads)
    try send(1000)
    #expect(budget.waiting > limit / 2)
    thaw()
    try await settle()
    try send(180)
    try await settle()
    for stream in streams {
      let newest = try #require(stream.epoch.window.segments.last { $0.isComplete }?.sequenceNumber)
      let programme = try #require(archive.epoch(stream.epoch.id))
      for _ in 0..<1000 where programme.find(newest) == nil { try await Task.sleep(for: .milliseconds(10)) }
      let there = (1...newest).filter { programme.find($0) != nil }
      #expect(there.first == 1 && there.last == newest && there.count < newest, "\(there) of \(newest)")
    }
  }

  /// Waits until so many segments of two seconds are on the disk.
  private func settle(_ source: ReplaySource, _ seconds: Int) async throws {
    for _ in 0..<6000 where source.withIndex({ $0.completeCount }) * 2 < seconds {
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}

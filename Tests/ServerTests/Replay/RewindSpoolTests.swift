import FMP4
import Glibc
import Ingest
import Logging
import NIOCore
import NIOPosix
import Support
import Testing

@testable import Server

@Suite struct RewindSpoolTests {
  /// What nobody can go back to any more takes no room on the disk; what they can is there.
  @Test func whatIsOutOfReachIsGivenBackToTheDisk() async throws {
    let folder = try TemporaryFolder()
    let threads = NIOThreadPool(numberOfThreads: 1)
    threads.start()
    let archive = RecordingArchive(folder: nil, rewind: MediaTime(milliseconds: 1000))
    archive.begin(epoch: "e")
    let spool = RewindSpool(
      stream: try #require(StreamName("cam")), epoch: "e", folder: folder.path, keepFree: 0, archive: archive,
      threads: threads, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    var epoch = Epoch(id: "e", settings: StreamSettings())
    epoch.startPublication()
    let seconds = 460
    let size = 150_000
    // One picture a second: what is kept reaches five minutes and a second back.
    for event in [.tracks([try SyntheticMedia.video(frameDuration: 30_000)])]
      + (0..<seconds).map({ index -> MediaEvent in
        .sample(SyntheticMedia.picture(index, group: 2, duration: 30_000, size: size, isSteady: true))
      })
    {
      for stored in try epoch.receive(event) { spool.receive(stored) }
      // The queue holds 64 MiB.
      if let spooled = archive.epoch("e")?.find(1)?.source, case .sample(let sample) = event,
        sample.decodeTime % 3_000_000 == 0
      {
        try await settle(spooled, Int(sample.decodeTime / 30_000) - 10)
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
    try await threads.shutdownGracefully()
  }

  /// Waits until so many segments of two seconds are on the disk.
  private func settle(_ source: ReplaySource, _ seconds: Int) async throws {
    for _ in 0..<6000 where source.withIndex({ $0.completeCount }) * 2 < seconds {
      try await Task.sleep(for: .milliseconds(5))
    }
  }
}

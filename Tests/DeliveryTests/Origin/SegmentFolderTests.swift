@testable import Delivery
import FMP4
import Glibc
import Logging
import NIOCore
import NIOPosix
import Playlists
import Publishing
import Storage
@testable import Streams
import StreamSupport
import Support
import Testing

@Suite struct SegmentFolderTests {
  /// A folder of its own, removed afterwards.
  private func withFolder(_ body: (String) async throws -> Void) async throws {
    var template = Array("/tmp/weir-segments-XXXXXX".utf8CString)
    let made = template.withUnsafeMutableBufferPointer { buffer -> String? in
      guard let base = buffer.baseAddress, mkdtemp(base) != nil else { return nil }
      return String(cString: base)
    }
    let path = try #require(made)
    defer { remove(path) }
    try await body(path)
  }

  private func remove(_ path: String) {
    for name in names(in: path) {
      let child = "\(path)/\(name)"
      if unlink(child) != 0 { remove(child) }
    }
    rmdir(path)
  }

  private func names(in path: String) -> [String] {
    guard let folder = opendir(path) else { return [] }
    defer { closedir(folder) }
    var names: [String] = []
    while let entry = readdir(folder) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names.sorted()
  }

  private func contents(_ path: String) -> [UInt8]? {
    guard let file = fopen(path, "r") else { return nil }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = fread(&bytes, 1, bytes.count, file)
    return Array(bytes.prefix(count))
  }

  /// Feeds a stream to the folder and waits until the disk has it all.
  private func write(seconds: Int, window: Int64, to folder: String) async throws -> EpochDriver {
    let thread = NIOThreadPool(numberOfThreads: 1)
    thread.start()
    let sink = SegmentFolder(
      stream: try #require(StreamName("cam")), folder: folder, thread: thread,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    var driver = EpochDriver(StreamSettings { $0.window = MediaTime(milliseconds: window) })
    try driver.publish(seconds: seconds)
    try driver.end()
    for event in driver.events {
      sink.receive(event)
      // One at a time, as they come in life: a burst would be shed.
      if case .segmentEnd = event { try await thread.runIfActive {} }
    }
    try await thread.runIfActive {}
    try await thread.shutdownGracefully()
    return driver
  }

  @Test func theFolderHoldsTheSameTreeAndBytesAsTheServer() async throws {
    try await withFolder { folder in
      let driver = try await write(seconds: 7, window: 60_000, to: folder)
      let window = driver.epoch.window
      let epoch = "\(folder)/cam/epoch1"
      #expect(names(in: "\(folder)/cam") == ["epoch1", "index.m3u8", "manifest.mpd"])
      #expect(names(in: "\(epoch)/av") == ["1.m4s", "2.m4s", "3.m4s", "4.m4s", "index.m3u8", "init-1.mp4"])
      let playlist = try #require(contents("\(epoch)/av/index.m3u8"))
      #expect(playlist == Array(HLSMediaPlaylist(window: window).render().readableBytesView))
      #expect(String(decoding: playlist, as: UTF8.self).hasSuffix("#EXT-X-ENDLIST\n"))
      let first = try #require(window.segment(1))
      #expect(contents("\(epoch)/av/1.m4s")?.count == first.memory.byteCount)
      let audio = try #require(first.span(of: .audio))
      let byTime = try #require(contents("\(epoch)/audio/t1-\(audio.start).m4s"))
      // HLS names the same file.
      let listed = String(decoding: contents("\(epoch)/audio/index.m3u8") ?? [], as: UTF8.self)
      #expect(listed.contains("\nt1-\(audio.start).m4s\n"))
      #expect(names(in: "\(epoch)/audio").filter { $0.hasSuffix(".m4s") }.allSatisfy { $0.hasPrefix("t1-") })
      let boxes = try #require(Box.parse(byTime))
      #expect(boxes.first?.type == "styp")
      #expect(boxes.filter { $0.type == "moof" }.count == first.fragments.count)
    }
  }

  private let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  private func make(_ path: String, _ text: String = "") throws {
    let file = try #require(fopen(path, "w"))
    fputs(text, file)
    fclose(file)
  }

  /// A process that another test has just started may hold what it inherited of an epoch's lock for a moment.
  private func sweep(_ folder: String, until isDone: () -> Bool) async throws {
    for _ in 0..<100 where !isDone() {
      SegmentSweep.run(folder: folder, logger: quiet)
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  @Test func whatAnEarlierRunLeftIsRemoved() async throws {
    try await withFolder { folder in
      _ = try await write(seconds: 7, window: 60_000, to: folder)
      try make("\(folder)/cam/epoch1/av/5.m4s.tmp", "half")
      try await sweep(folder) { names(in: folder).isEmpty }
      #expect(names(in: folder).isEmpty)
    }
  }

  @Test func whatWeirDidNotMakeStays() async throws {
    try await withFolder { folder in
      _ = try await write(seconds: 7, window: 60_000, to: folder)
      let before = names(in: "\(folder)/cam/epoch1/av")
      // Files of other programs, and folders that only look like weir's.
      for path in ["other", "other/k2x9qa1b", "other/k2x9qa1b/av", "cam/notes", "cam/k2x9qa1b"] {
        try FolderFile.makeFolder("\(folder)/\(path)")
      }
      for path in ["other/k2x9qa1b/av/1.m4s", "cam/readme.txt", "cam/epoch1/av/family.mp4"] {
        try make("\(folder)/\(path)", "mine")
      }
      symlink("\(folder)/other", "\(folder)/link")
      try await sweep(folder) { !names(in: "\(folder)/cam/epoch1/av").contains("1.m4s") }
      #expect(names(in: folder) == ["cam", "link", "other"])
      #expect(names(in: "\(folder)/other/k2x9qa1b/av") == ["1.m4s"])
      #expect(names(in: "\(folder)/cam/epoch1/av") == ["family.mp4"])
      #expect(before.count == 6)
      let left = names(in: "\(folder)/cam")
      #expect(left == ["epoch1", "index.m3u8", "k2x9qa1b", "manifest.mpd", "notes", "readme.txt"])
    }
  }

  @Test func anEpochThatIsBeingFilledStays() async throws {
    try await withFolder { folder in
      try FolderFile.makeFolder("\(folder)/cam")
      let path = "\(folder)/cam/k2x9qa1b"
      var epoch: EpochFolder? = try EpochFolder(making: path)
      try FolderFile.makeFolder("\(path)/av")
      try make("\(path)/av/1.m4s")
      SegmentSweep.run(folder: folder, logger: quiet)
      #expect(names(in: "\(path)/av") == ["1.m4s"])
      _ = epoch.take()
      try await sweep(folder) { names(in: folder).isEmpty }
      #expect(names(in: folder).isEmpty)
    }
  }

  @Test(arguments: [("k2x9qa1b", true), ("epoch1", true), ("short", false), ("K2X9QA1B", false), ("..", false)])
  func namesOfEpochsAreNumbersInBase36(_ name: String, _ isOne: Bool) {
    #expect(EpochFolder.isName(name) == isOne)
  }

  @Test func whatWasLeftOutIsMadeUpFor() async throws {
    try await withFolder { folder in
      let thread = NIOThreadPool(numberOfThreads: 1)
      thread.start()
      let sink = SegmentFolder(
        stream: try #require(StreamName("cam")), folder: folder, thread: thread, logger: quiet)
      var driver = EpochDriver(StreamSettings { $0.window = MediaTime(milliseconds: 120_000) })
      try driver.publish(seconds: 40)
      try driver.end()
      // The disk does not answer until everything has come.
      let thaw = try blockThread(of: thread)
      for event in driver.events { sink.receive(event) }
      thaw()
      try await thread.runIfActive {}
      try await thread.shutdownGracefully()
      let files = names(in: "\(folder)/cam/epoch1/av").filter { $0.hasSuffix(".m4s") }
      #expect(Set(files) == Set((1...20).map { "\($0).m4s" }))
    }
  }

  @Test func whatLeftTheWindowLeavesTheFolder() async throws {
    try await withFolder { folder in
      let driver = try await write(seconds: 60, window: 16_000, to: folder)
      let kept = driver.epoch.window.segments.map { "\($0.sequenceNumber).m4s" }
      let files = names(in: "\(folder)/cam/epoch1/av").filter { $0.hasSuffix(".m4s") }
      #expect(Set(files) == Set(kept))
      #expect(names(in: "\(folder)/cam/epoch1/video").filter { $0.hasPrefix("t") }.count == kept.count)
    }
  }
}

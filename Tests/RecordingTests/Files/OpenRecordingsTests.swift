import Base
import FMP4
import Glibc
import NIOCore
import Publishing
@testable import Recording
import RecordingFiles
import RecordingSupport
import Storage
import Support
import Testing

@Suite struct OpenRecordingsTests {
  /// A stream's folder, and files in it that hold one line each.
  private struct Scene {
    let root: TemporaryFolder
    let folder: RecordingFolder
    let budget: DescriptorBudget
    let files: OpenRecordings

    init(limit: Int) throws {
      root = try TemporaryFolder()
      budget = DescriptorBudget(limit: limit)
      files = OpenRecordings(descriptors: budget)
      folder = try RecordingFolder.open(root.path).folder(of: try #require(StreamName("cam")), ifAbsent: .make)
    }

    func write(_ text: String, to name: String) throws {
      let descriptor = openat(folder.descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
      try #require(descriptor >= 0)
      defer { close(descriptor) }
      try #require(pwrite(descriptor, text, text.utf8.count, 0) == text.utf8.count)
    }

    func open(_ name: String) throws -> SharedFile {
      try #require(try files.open(name, in: folder)).file
    }

    func text(_ file: SharedFile) -> String? {
      guard case .read(let bytes) = file.read(at: 0, count: 100) else { return nil }
      return String(buffer: bytes)
    }

    /// Files are closed on another thread.
    func wait(for count: Int) async throws {
      for _ in 0..<500 where budget.openFiles != count { try await Task.sleep(for: .milliseconds(10)) }
      #expect(budget.openFiles == count)
    }
  }

  @Test func aFileIsOpenOnceHoweverManyReadIt() async throws {
    let scene = try Scene(limit: 1024)
    try scene.write("one", to: "a.mp4")
    var readers: [SharedFile] = []
    for _ in 0..<1000 { readers.append(try scene.open("a.mp4")) }
    #expect(readers.allSatisfy { $0 === readers[0] })
    #expect(scene.root.openFiles.count == 1)
    #expect(scene.budget.openFiles == 1)
    #expect(scene.text(readers[0]) == "one")
    readers.removeLast(999)
    #expect(scene.budget.openFiles == 1)
    readers = []
    try await scene.wait(for: 0)
    #expect(scene.root.openFiles.isEmpty)
  }

  /// Offsets that count from elsewhere take no descriptor either, and keep the file open.
  @Test func aShiftedFileIsTheSameDescriptor() async throws {
    let scene = try Scene(limit: 1024)
    try scene.write("head and media", to: "a.mp4")
    var whole: SharedFile? = try scene.open("a.mp4")
    var media: SharedFile? = SharedFile(try #require(whole), shiftedBy: 9)
    #expect(media?.descriptor == whole?.descriptor)
    whole = nil
    #expect(media.flatMap(scene.text) == "media")
    #expect(scene.budget.openFiles == 1)
    media = nil
    try await scene.wait(for: 0)
  }

  @Test func aFileThatTookTheNameOfAnotherIsAnother() async throws {
    let scene = try Scene(limit: 1024)
    try scene.write("old", to: "a.mp4")
    let old = try scene.open("a.mp4")
    try scene.write("new", to: "b.mp4")
    try #require(renameat(scene.folder.descriptor, "b.mp4", scene.folder.descriptor, "a.mp4") == 0)
    let new = try scene.open("a.mp4")
    #expect(scene.text(old) == "old" && scene.text(new) == "new")
    scene.folder.remove("a.mp4")
    #expect(try scene.files.open("a.mp4", in: scene.folder) == nil)
    try scene.write("newest", to: "a.mp4")
    let newest = try scene.open("a.mp4")
    #expect(scene.text(newest) == "newest" && scene.text(new) == "new")
    #expect(scene.budget.openFiles == 3)
  }

  /// Of 64 descriptors five are for files.
  @Test func whereThereIsNoRoomForAnotherFileThoseThatAreOpenStayReadable() async throws {
    let scene = try Scene(limit: 64)
    #expect(scene.budget.files == 5)
    var readers: [SharedFile] = []
    for number in 1...6 { try scene.write("\(number)", to: "\(number).mp4") }
    for number in 1...5 { readers.append(try scene.open("\(number).mp4")) }
    #expect(throws: OpenRecordings.Full.self) { try scene.open("6.mp4") }
    #expect(try scene.open("5.mp4") === readers[4])
    #expect(try scene.files.open("7.mp4", in: scene.folder) == nil)
    readers.removeFirst()
    try await scene.wait(for: 4)
    let sixth = try scene.open("6.mp4")
    #expect(scene.text(sixth) == "6")
  }

  /// Of 128 descriptors eleven are for files; the ninth makes three quarters of them taken.
  @Test func `One client leaves a quarter of the places to others`() async throws {
    let scene = try Scene(limit: 128)
    let (greedy, other) = (NetworkAddress(network: 1, interface: 1), NetworkAddress(network: 2, interface: 1))
    for number in 1...12 { try scene.write("\(number)", to: "\(number).mp4") }
    func open(_ number: Int, _ client: NetworkAddress) throws -> SharedFile? {
      try scene.files.open("\(number).mp4", in: scene.folder, for: client)?.file
    }
    var readers = try (1...9).map { try open($0, greedy) }
    #expect(throws: OpenRecordings.Full.self) { try open(10, greedy) }
    #expect(try open(9, greedy) === readers[8], "what is open already is read by all")
    readers.append(try open(10, other))
    readers.append(try open(11, other))
    #expect(throws: OpenRecordings.Full.self) { try open(12, other) }
    #expect(scene.budget.openFiles == 11)
    readers = []
    try await scene.wait(for: 0)
    #expect(try open(12, greedy) != nil)
  }

  /// Files that are over count, and the oldest that viewers can go back to are let go.
  @Test func whatRewindingKeepsOpenIsCountedAndTheOldestGoes() async throws {
    let scene = try Scene(limit: 128)
    // Eleven are for files, of which five are for rewinding.
    #expect(scene.budget.files == 11)
    let stream = try #require(StreamName("cam"))
    let archive = RecordingArchive(
      folder: scene.root.path, rewind: { _ in MediaTime(milliseconds: 3_600_000) }, files: scene.files)
    archive.begin(epoch: "e", of: stream)
    var names: [String] = []
    for number in 0..<20 {
      let start = RecordingHarness.start + Int64(number) * 1_000_000_000
      let name = RecordingName(start: UTCText(start))
      let file = try RecordingFile.create(in: scene.folder, name: name)
      let source = try #require(archive.begin(stream: stream, epoch: "e", file: file))
      names.append(name.stem)
      archive.end(source, .left)
    }
    let kept = try #require(archive.epoch("e")).sources.compactMap(\.name)
    #expect(kept == Array(names.suffix(5)))
    try await scene.wait(for: 5)
    // Addresses are known of an epoch and the one before.
    archive.begin(epoch: "f", of: stream)
    #expect(archive.epoch("e") != nil)
    archive.begin(epoch: "g", of: stream)
    #expect(archive.epoch("e") == nil && archive.epoch("f") != nil)
    try await scene.wait(for: 0)
  }
}

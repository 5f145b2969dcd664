import Glibc
import NIOCore
import NIOPosix
import RecordingFiles
import Storage
import Support
import Synchronization
import Testing

@Suite struct FileOriginTests {
  @Test func whatTheDiskDoesNotGiveIsNoEndOfFile() throws {
    let folder = try TemporaryFolder()
    // A folder's bytes cannot be read.
    let descriptor = open(folder.path, O_RDONLY | O_DIRECTORY)
    try #require(descriptor >= 0)
    let file = SharedFile(taking: descriptor, kind: .disk)
    guard case .failed(code: EISDIR) = file.read(at: 0, count: 8) else {
      Issue.record("it was read")
      return
    }
    #expect(throws: RecordingFileReader.Unreadable.self) { try RecordingFileReader(file: file).read(at: 0, count: 8) }
  }

  /// A file whose every eighth byte tells its own place, pushed back and forth while others read it.
  @Test func readersNoticeNothingWhenTheBytesMove() async throws {
    let folder = try TemporaryFolder(.disk)
    try #require(try await folder.canInsert(), "the file system of /var/tmp cannot insert room")
    let path = "\(folder.path)/media"
    let descriptor = open(path, O_RDWR | O_CREAT, 0o644)
    try #require(descriptor >= 0)
    var media = ByteBuffer()
    for place in 0..<(Self.size / 8) { media.writeInteger(UInt64(place)) }
    try RecordingFile.write(media, to: descriptor, at: 0, path: path)
    let origin = FileOrigin()
    let file = SharedFile(taking: descriptor, kind: .disk, origin: origin)
    let end = End()
    let pool = NIOThreadPool(numberOfThreads: 3)
    pool.start()
    let expected = media
    try await withThrowingTaskGroup(of: Void.self) { tasks in
      for seed in 1...6 {
        tasks.addTask { try await Self.read(file, expected, seed: seed, until: end, on: pool) }
      }
      var moves = 0
      // Until much was read in between: a busy machine's readers may come late.
      while moves < 400 || end.reads.load(ordering: .relaxed) < 100 {
        let isThere = try await pool.runIfActive {
          origin.push(by: 4096) { fallocate(descriptor, FALLOC_FL_INSERT_RANGE, 0, 4096) == 0 }
        }
        let isBack = try await pool.runIfActive {
          origin.push(by: -4096) { fallocate(descriptor, FALLOC_FL_COLLAPSE_RANGE, 0, 4096) == 0 }
        }
        #expect(isThere && isBack)
        moves += 2
      }
      end.isReached.store(true, ordering: .relaxed)
      try await tasks.waitForAll()
    }
    try await pool.shutdownGracefully()
  }

  private final class End: Sendable {
    let isReached = Atomic(false)
    let reads = Atomic(0)
  }

  /// Reads here and there until the end, and counts.
  private static func read(
    _ file: SharedFile, _ media: ByteBuffer, seed: Int, until end: End, on pool: NIOThreadPool
  ) async throws {
    let group = MultiThreadedEventLoopGroup.singleton
    var place = seed
    while !end.isReached.load(ordering: .relaxed) {
      place = (place &* 7919 &+ 13) % (size - readSize)
      let offset = place / 8 * 8
      let range = FileRange(file: file, offset: offset, length: readSize)
      var bytes = try #require(try await range.readFront(readSize, on: pool, for: group.next()).get())
      // Near its end a file that is growing gives less.
      let wanted = media.getSlice(at: offset, length: bytes.readableBytes)
      guard bytes == wanted else {
        Issue.record("what was read at \(offset) differs")
        return
      }
      bytes.clear()
      end.reads.add(1, ordering: .relaxed)
    }
  }

  private static let size = 4 << 20
  private static let readSize = 96 << 10
}

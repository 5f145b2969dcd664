import Glibc
import NIOCore
@testable import RecordingFiles
import Support
import Testing

@Suite struct MoovInsertionTests {
  /// A file of its own with these bytes.
  private final class File {
    let descriptor: CInt
    let path: String
    private let folder: TemporaryFolder

    init(_ bytes: [UInt8]) throws {
      folder = try TemporaryFolder()
      path = "\(folder.path)/file.mp4"
      descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
      try RecordingFile.write(ByteBuffer(bytes: bytes), to: descriptor, at: 0, path: path)
    }

    deinit { close(descriptor) }

    private var insertion: MoovInsertion { MoovInsertion(descriptor: descriptor, path: path) }

    func insert(_ head: ByteBuffer) throws -> MoovInsertion.Outcome { try insertion.insert(head) }
    func takeBack() throws -> UInt64 { try insertion.takeBack(length: UInt64(try bytes.count)) }
    func beginning() throws -> UInt64? { try insertion.beginning(UInt64(try bytes.count)) }
    func write(_ bytes: ByteBuffer) throws { try RecordingFile.write(bytes, to: descriptor, at: 0, path: path) }

    var bytes: [UInt8] {
      get throws {
        var status = stat()
        fstat(descriptor, &status)
        let all = try RecordingFile.read(from: descriptor, at: 0, count: Int(status.st_size), path: path)
        return Array(all.readableBytesView)
      }
    }

    func canInsert() async throws -> Bool { try await folder.canInsert() }
  }

  private static func box(_ type: String, _ payload: [UInt8], size: Int? = nil) -> [UInt8] {
    let size = UInt32(size ?? payload.count + 8)
    return [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: size >> $0) } + Array(type.utf8) + payload
  }

  private static let fileType = box("ftyp", Array("iso6".utf8) + [0, 0, 0, 0] + Array("iso6mp41".utf8))
  private static let fragments = fileType + box("moov", [UInt8](repeating: 7, count: 300))

  /// Blocks of ext4 have 1, 2 or 4 KiB, those of XFS 512 bytes and more.
  @Test(arguments: [512, 1024, 1536, 3 * 1024, 4096, 65_536, 256 << 10, (256 << 10) + 512, (1 << 20) + 1024])
  func theFragmentsAreFoundBehindRoomOfAnySize(_ room: Int) throws {
    let rest = [UInt8](repeating: 0x55, count: max(0, room - 512))
    let file = try File([UInt8](repeating: 0, count: min(512, room)) + rest + Self.fragments)
    #expect(try file.beginning() == UInt64(room))
  }

  /// Four letters are not enough: they may be a number in a table.
  @Test(arguments: [
    box("ftyp", Array("iso6".utf8) + [0, 0, 0, 0], size: 15), box("ftyp", [], size: 8),
    box("ftyp", Array("iso6".utf8) + [UInt8](repeating: 0, count: 1100)),
    box("ftyp", [0, 1, 2, 3] + [0, 0, 0, 0]) + box("moov", []),
    box("ftyp", Array("iso6".utf8) + [0, 0, 0, 0]) + box("text", [1, 2, 3]),
    box("ftyp", Array("iso6".utf8) + [0, 0, 0, 0]) + box("moov", [], size: 1 << 20),
    box("ftyp", Array("iso6".utf8) + [0, 0, 0, 0]) + box("moov", [], size: 4),
  ])
  func whatOnlyLooksLikeABeginningIsPassedOver(_ decoy: [UInt8]) throws {
    var room = [UInt8](repeating: 0, count: 8192)
    room.replaceSubrange(2048..<2048 + decoy.count, with: decoy)
    let file = try File(room + Self.fragments)
    #expect(try file.beginning() == 8192)
    let none = try File(room)
    #expect(try none.beginning() == nil)
  }

  @Test func aHeadThatIsThereIsNotTakenBack() throws {
    let bytes = Self.fragments + [UInt8](repeating: 0, count: 8192)
    let file = try File(bytes)
    #expect(try file.takeBack() == 0)
    let zeros = try File([UInt8](repeating: 0, count: 8192))
    #expect(try zeros.takeBack() == 0)
    #expect(try zeros.bytes.count == 8192)
  }

  @Test func whatWasInsertedCanBeTakenBackUntilItsFirstSectorIsThere() async throws {
    let content = Self.fragments + (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
    let file = try File(content)
    try #require(try await file.canInsert(), "the file system of /var/tmp cannot insert room, so nothing is shown here")
    let head = (0..<8192).map { UInt8(truncatingIfNeeded: $0 / 256 + 1) }
    #expect(try file.insert(ByteBuffer(bytes: head)) == .inserted)
    #expect(try file.bytes == head + content)
    // A kill before the first sector was written.
    try file.write(ByteBuffer(repeating: 0, count: MoovInsertion.sector))
    #expect(try file.takeBack() == 8192)
    #expect(try file.bytes == content)
    #expect(try file.takeBack() == 0)
  }

  @Test func whereRoomCannotBeInsertedNothingChanges() throws {
    let file = try File(Self.fragments)
    // No whole number of blocks: no file system inserts that.
    #expect(try file.insert(ByteBuffer(repeating: 1, count: 1000)) == .unsupported)
    #expect(try file.bytes == Self.fragments)
  }
}

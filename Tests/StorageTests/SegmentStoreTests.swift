import Glibc
import NIOCore
@testable import Storage
import Testing

@Suite struct SegmentStoreTests {
  private static let page = 4096

  private static func memory(in store: SegmentStore, _ byte: UInt8, pages: Int) throws -> SegmentMemory {
    var memory = try SegmentMemory(in: store)
    #expect(try memory.append([ByteBuffer(repeating: byte, count: pages * page - 100)]) == 0)
    #expect(try memory.append([ByteBuffer(repeating: byte, count: 100)]) == pages * page - 100)
    return memory
  }

  private static func blocks(_ descriptor: CInt) -> Int {
    var status = stat()
    return fstat(descriptor, &status) == 0 ? Int(status.st_blocks) * 512 / page : -1
  }

  private static func contents(_ memory: SegmentMemory) throws -> Set<UInt8> {
    let range = FileRange(file: memory.file, offset: 0, length: memory.byteCount)
    let address = try #require(range.file.kernelAddress(of: range))
    let mapped = UnsafeRawBufferPointer(start: address, count: range.length)
    let read = try range.read()
    #expect(mapped.elementsEqual(read.readableBytesView))
    return Set(mapped)
  }

  @Test func segmentsShareADescriptorAndGiveTheirMemoryBack() throws {
    let store = SegmentStore(name: "weir-store-test")
    let first = try Self.memory(in: store, 1, pages: 10)
    var second: SegmentMemory? = try Self.memory(in: store, 2, pages: 20)
    let third = try Self.memory(in: store, 3, pages: 5)
    let descriptor = first.file.descriptor
    #expect(second?.file.descriptor == descriptor)
    #expect(third.file.descriptor == descriptor)
    #expect(Self.blocks(descriptor) == 35)
    #expect(try Self.contents(first) == [1])
    #expect(try Self.contents(#require(second)) == [2])

    // A viewer holds a range longer than the window holds the segment.
    var held: FileRange? = second.map { FileRange(file: $0.file, offset: 8000, length: 8000) }
    let place = second?.file.base
    second = nil
    #expect(Self.blocks(descriptor) == 35)
    #expect(try held?.read() == ByteBuffer(repeating: 2, count: 8000))
    held = nil
    #expect(Self.blocks(descriptor) == 15)

    let fourth = try Self.memory(in: store, 4, pages: 1)
    #expect(fourth.file.base == place)
    #expect(Self.blocks(descriptor) == 16)
    #expect(try Self.contents(fourth) == [4])
    #expect(try Self.contents(first) == [1])
    #expect(try Self.contents(third) == [3])
  }

  @Test func whatIsReadBeyondItsWindowCountsUntilItsLastReaderIsGone() throws {
    let leftovers = LeftoverBudget(limit: 10 * Self.page)
    let store = SegmentStore(name: "weir-store-test", leftovers: leftovers)
    var first: SegmentMemory? = try Self.memory(in: store, 1, pages: 6)
    var second: SegmentMemory? = try Self.memory(in: store, 2, pages: 4)
    var unread: SegmentMemory? = try Self.memory(in: store, 3, pages: 20)
    var third: SegmentMemory? = try Self.memory(in: store, 4, pages: 1)
    var readers = [first, second, third].map { $0?.file }
    // The window is read.
    var copy = first
    first = nil
    #expect(leftovers.bytes == 0)
    copy = nil
    #expect(copy == nil && first == nil && leftovers.bytes == 6 * Self.page)
    second = nil
    unread = nil
    #expect(second == nil && unread == nil && leftovers.bytes == 10 * Self.page)
    #expect(readers.map { $0?.isCalledIn } == [false, false, false])
    third = nil
    #expect(third == nil && leftovers.bytes == 5 * Self.page)
    #expect(readers.map { $0?.isCalledIn } == [true, false, false])
    readers = []
    #expect(readers.isEmpty && leftovers.bytes == 0)
  }

  @Test func theLastReaderClosesTheDescriptor() throws {
    var store: SegmentStore? = SegmentStore(name: "weir-store-test")
    var memory: SegmentMemory? = try Self.memory(in: #require(store), 1, pages: 1)
    let descriptor = try #require(memory?.file.descriptor)
    store = nil
    #expect(try Self.contents(#require(memory)) == [1])
    var before = stat()
    #expect(fstat(descriptor, &before) == 0)
    memory = nil
    var after = stat()
    // Another file may have its number by now.
    #expect(fstat(descriptor, &after) != 0 || after.st_ino != before.st_ino)
  }

  @Test func aSegmentCannotReachIntoTheNextSlot() throws {
    let store = SegmentStore(name: "weir-store-test")
    var first = try SegmentMemory(in: store)
    let second = try Self.memory(in: store, 2, pages: 1)
    let piece = ByteBuffer(repeating: 9, count: 1 << 20)
    let whole = [ByteBuffer](repeating: piece, count: SegmentStore.slotBytes >> 20)
    #expect(throws: StorageError.self) { try first.append(whole + [ByteBuffer(string: "x")]) }
    #expect(first.byteCount == 0)
    _ = try first.append(whole)
    #expect(throws: StorageError.self) { try first.append([ByteBuffer(string: "x")]) }
    #expect(try Self.contents(second) == [2])
  }
}

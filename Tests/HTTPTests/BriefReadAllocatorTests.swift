@testable import HTTP
import NIOCore
import Testing

@Suite("Read buffers that are given back")
struct BriefReadAllocatorTests {
  private var pool = NIOPooledRecvBufferAllocator(capacity: 1, recvAllocator: BriefReadAllocator())

  /// The size of a buffer, and whether the pool has it, too.
  private struct Read: Equatable {
    var size: Int
    var isKept: Bool
  }

  /// Reads as many bytes into the next buffer as there are, at most its size.
  private mutating func read(_ count: Int) -> Read {
    var (buffer, size) = pool.buffer(allocator: ByteBufferAllocator()) { buffer in
      let size = buffer.writableBytes
      buffer.writeRepeatingByte(1, count: min(count, size))
      return size
    }
    pool.record(actualReadBytes: min(count, size))
    return Read(size: size, isKept: buffer.modifyIfUniquelyOwned { _ in } == nil)
  }

  @Test mutating func onlyTheSmallFirstBufferIsKept() {
    let reads = [500, 200, 200, 200].map { read($0) }
    #expect(reads.first == Read(size: BriefReadAllocator.first, isKept: true))
    #expect(reads.dropFirst().allSatisfy { $0 == Read(size: BriefReadAllocator.usual, isKept: false) })
    #expect(pool.count == 1)
  }

  @Test mutating func buffersGrowWhileTheyAreFilledAndBecomeUsualAgain() {
    let reads = [16, 1024, 4096, 16_384, 16_384, 100, 100].map { read($0) }
    #expect(reads.map(\.size) == [16, 1024, 4096, 16_384, 16_384, 16_384, 1024])
    #expect(reads.map(\.isKept) == [true, false, false, false, false, false, false])
  }
}

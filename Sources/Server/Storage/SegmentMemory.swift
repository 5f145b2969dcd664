internal import Glibc
package import NIOCore

/// The one home of a segment's bytes: a slot of its stream's memfd that holds all tracks interleaved, as they are recorded and,
/// where there is one of a kind, served. Whole segments, fragments and the runs of tracks are ranges of it, sent by sendfile;
/// no viewer and no layout has a copy.
package struct SegmentMemory: Sendable {
  package let file: SharedFile
  package private(set) var byteCount = 0
  /// For as long as a window has the segment.
  private let window: SegmentTenure.Window?

  /// Throws when the system gives no descriptor.
  package init(in store: SegmentStore) throws(StorageError) {
    file = try store.makeFile()
    window = file.tenure.map(SegmentTenure.Window.init)
  }

  /// So many bytes that are elsewhere: a recorded segment, whose place its index knows.
  package init(recorded byteCount: Int, in file: SharedFile) {
    self.file = file
    self.byteCount = byteCount
    window = nil
  }

  /// Appends buffers in order with as few system calls as possible; memory, so it never waits for a disk.
  /// Returns the offset of the first byte. Throws when the system gives no memory, and for more than a slot holds.
  package mutating func append(_ buffers: [ByteBuffer]) throws(StorageError) -> Int {
    let start = byteCount
    guard buffers.reduce(start, { $0 + $1.readableBytes }) <= SegmentStore.slotBytes else {
      throw StorageError(operation: "append to a segment", errno: EFBIG)
    }
    var retained: [Unmanaged<AnyObject>] = []
    defer { for storage in retained { storage.release() } }
    var vectors: [iovec] = []
    vectors.reserveCapacity(buffers.count)
    retained.reserveCapacity(buffers.count)
    for buffer in buffers where buffer.readableBytes > 0 {
      buffer.withUnsafeReadableBytesWithStorageManagement { bytes, storage in
        retained.append(storage.retain())
        vectors.append(iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count))
      }
    }
    defer { file.tenure?.grow(to: byteCount) }
    var next = 0
    while next < vectors.count {
      let count = min(vectors.count - next, Int(maximumVectors))
      let written = vectors.withUnsafeBufferPointer { all -> Int in
        guard let base = all.baseAddress else { return 0 }
        return pwritev(file.descriptor, base + next, Int32(count), off_t(file.base + byteCount))
      }
      if written < 0 {
        if errno == EINTR { continue }
        throw StorageError(operation: "pwritev", errno: errno)
      }
      byteCount += written
      next = Self.advance(&vectors, from: next, by: written)
    }
    return start
  }

  /// Skips what was written; returns the index of the first vector that still has bytes.
  private static func advance(_ vectors: inout [iovec], from first: Int, by written: Int) -> Int {
    var index = first
    var left = written
    while index < vectors.count, left >= vectors[index].iov_len {
      left -= vectors[index].iov_len
      index += 1
    }
    if index < vectors.count, left > 0 {
      vectors[index].iov_base += left
      vectors[index].iov_len -= left
    }
    return index
  }
}

/// glibc's limit on vectors a call; the header's macro does not reach Swift.
private let maximumVectors: Int32 = 1024

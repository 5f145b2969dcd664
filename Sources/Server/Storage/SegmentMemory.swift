internal import Glibc
package import NIOCore

/// The only copy of a segment's bytes: a slot of its stream's memfd. It holds all tracks interleaved, as they are recorded
/// (and served, with one track of each kind). Segments, fragments and runs of single tracks are ranges of it, sent with
/// sendfile. No viewer and no layout has a copy.
package struct SegmentMemory: Sendable {
  package let file: SharedFile
  package private(set) var byteCount = 0
  /// Kept while a window holds the segment.
  private let window: SegmentTenure.Window?

  /// Throws when the system gives no descriptor.
  package init(in store: SegmentStore) throws(StorageError) {
    file = try store.makeFile()
    window = file.tenure.map(SegmentTenure.Window.init)
  }

  /// A recorded segment of `byteCount` bytes, at a place that its index gives.
  package init(recorded byteCount: Int, in file: SharedFile) {
    self.file = file
    self.byteCount = byteCount
    window = nil
  }

  /// Appends buffers in order, with few system calls. Never blocks on a disk. Returns the offset of the first byte. Throws when
  /// the system gives no memory, or when the slot is full.
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

  /// Skips the bytes that were written. Returns the index of the first vector with bytes left.
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

/// glibc's limit of vectors per call; Swift cannot import the macro.
private let maximumVectors: Int32 = 1024

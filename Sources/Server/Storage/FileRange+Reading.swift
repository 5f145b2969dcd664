package import NIOCore
package import NIOPosix

extension FileRange {
  /// Copies a memory file's bytes; false if they are not all there.
  package func copy(into buffer: inout ByteBuffer) -> Bool {
    (try? File(file.descriptor).read(into: &buffer, at: position, count: length)) == length
  }

  /// The bytes. Waits for the disk where the file is on one: not for event loops then.
  package func read() throws(StorageError) -> ByteBuffer {
    let bytes = try File(file.descriptor).read(at: position, count: length)
    guard bytes.readableBytes == length else { throw StorageError(operation: "read", errno: EIO) }
    return bytes
  }

  /// Reads up to `count` bytes from the front of the range on `pool`; nil if they cannot be read.
  package func readFront(
    _ count: Int, on pool: NIOThreadPool, for eventLoop: any EventLoop
  ) -> EventLoopFuture<ByteBuffer?> {
    readFront(count, on: pool, for: eventLoop, attempts: Self.attempts)
  }

  /// While the file's bytes are pushed back, a read is tried again after `pause`: for up to a minute.
  private static let attempts = 12_000
  private static let pause = TimeAmount.milliseconds(5)

  private func readFront(
    _ count: Int, on pool: NIOThreadPool, for eventLoop: any EventLoop, attempts: Int
  ) -> EventLoopFuture<ByteBuffer?> {
    let count = min(length, count)
    return pool.runIfActive(eventLoop: eventLoop) { file.read(at: offset, count: count) }.flatMap { outcome in
      switch outcome {
      case .read(let bytes): return eventLoop.makeSucceededFuture(bytes.readableBytes > 0 ? bytes : nil)
      case .failed: return eventLoop.makeSucceededFuture(nil)
      case .moving:
        guard attempts > 0 else { return eventLoop.makeSucceededFuture(nil) }
        return eventLoop.flatScheduleTask(in: Self.pause) {
          readFront(count, on: pool, for: eventLoop, attempts: attempts - 1)
        }.futureResult
      }
    }
  }
}

package import NIOCore
package import NIOPosix

extension FileRange {
  /// Appends the bytes of a memory file. False when some are missing.
  package func copy(into buffer: inout ByteBuffer) -> Bool {
    (try? File(file.descriptor).read(into: &buffer, at: position, count: length)) == length
  }

  /// The bytes. May block on the disk; do not call on an event loop then.
  package func read() throws(StorageError) -> ByteBuffer {
    let bytes = try File(file.descriptor).read(at: position, count: length)
    guard bytes.readableBytes == length else { throw StorageError(operation: "read", errno: EIO) }
    return bytes
  }

  /// Reads up to `count` bytes from the start of the range, on `pool`. Nil when they cannot be read.
  package func readFront(
    _ count: Int, on pool: NIOThreadPool, for eventLoop: any EventLoop
  ) -> EventLoopFuture<ByteBuffer?> {
    readFront(count, on: pool, for: eventLoop, attempts: Self.attempts)
  }

  /// A read that meets moving bytes is repeated after `pause`, for up to a minute.
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

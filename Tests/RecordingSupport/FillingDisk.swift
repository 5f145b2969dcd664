@testable package import RecordingFiles
internal import Synchronization

/// A disk with an exact number of free bytes, which no other program changes. Bytes are written to the real disk.
package final class FillingDisk: Sendable {
  /// What `--keep-free` is set to.
  package let keepFree: Int64 = 1 << 30
  private let free: Atomic<Int64>

  package init() { free = Atomic(keepFree + (64 << 20)) }

  /// Fewer bytes are free than are to stay free.
  package func fill() { free.store(keepFree - (64 << 20), ordering: .relaxed) }

  package func empty() { free.store(keepFree + (64 << 20), ordering: .relaxed) }

  package var calls: DiskCalls { DiskCalls(freeBytes: { _ in self.free.load(ordering: .relaxed) }) }
}

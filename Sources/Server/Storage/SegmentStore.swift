internal import Glibc
internal import Synchronization

/// The memory of all segments of a stream and its rungs, in one memfd. A stream thus takes one descriptor, whatever the
/// number of segments in its window. Each segment has a slot that is larger than any segment; the file has holes between
/// them. The memory of a slot is freed when its last reader is gone.
///
/// Each segment has its own memfd where files may not be large (`ulimit -f`), or where holes cannot be punched (some
/// sandboxes).
package final class SegmentStore: Sendable {
  /// Bytes of a slot. A segment is cut at 64 MiB; the sample that exceeds this has at most 16 MiB.
  static let slotBytes = 128 << 20

  /// The name in /proc of the memfds of streams.
  package static let ofStreams = "weir-segments"

  private let name: String
  /// Limits the memory of segments that left the window. Nil when another budget does.
  private let leftovers: LeftoverBudget?
  private let closed: (@Sendable () -> Void)?
  private let state = Mutex(State())

  private struct State {
    /// Opened for the first segment.
    var descriptor: CInt?
    var slots = 0
    /// Empty slots that can be used again.
    var free: [Int] = []
  }

  /// `name` appears in /proc for the descriptor. `closed` is called when all memory is freed.
  package init(name: String, leftovers: LeftoverBudget? = nil, closed: (@Sendable () -> Void)? = nil) {
    self.name = name
    self.leftovers = leftovers
    self.closed = closed
  }

  deinit {
    if let descriptor = state.withLock({ $0.descriptor }) { Glibc.close(descriptor) }
    closed?()
  }

  /// Whether one file can hold all segments and free the memory of single slots.
  package static let canShare: Bool = {
    var limit = rlimit()
    if getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0, limit.rlim_cur != rlim_t.max { return false }
    let descriptor = memfd_create("weir-probe", UInt32(MFD_CLOEXEC))
    guard descriptor >= 0 else { return true }
    defer { Glibc.close(descriptor) }
    return pwrite(descriptor, "x", 1, 0) == 1 && punch(descriptor, at: 0) && holdsNothing(descriptor)
  }()

  private static func punch(_ descriptor: CInt, at start: off_t) -> Bool {
    fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, start, off_t(slotBytes)) == 0
  }

  private static func holdsNothing(_ descriptor: CInt) -> Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && status.st_blocks == 0
  }

  /// An empty file in a free slot. Throws when the system gives no descriptor.
  package func makeFile() throws(StorageError) -> SharedFile {
    let tenure = leftovers.map(SegmentTenure.init)
    guard Self.canShare else {
      return SharedFile(taking: try makeDescriptor(), kind: .memory, tenure: tenure) { [self] in
        withExtendedLifetime(self) {}
      }
    }
    let (descriptor, slot) = try take()
    return SharedFile(at: slot * Self.slotBytes, of: descriptor, tenure: tenure) { [self] in release(slot) }
  }

  private func makeDescriptor() throws(StorageError) -> CInt {
    let descriptor = memfd_create(name, UInt32(MFD_CLOEXEC))
    guard descriptor >= 0 else { throw StorageError(operation: "memfd_create", errno: errno) }
    return descriptor
  }

  private func take() throws(StorageError) -> (descriptor: CInt, slot: Int) {
    try state.withLock { state throws(StorageError) in
      let descriptor = if let known = state.descriptor { known } else { try makeDescriptor() }
      state.descriptor = descriptor
      if let slot = state.free.popLast() { return (descriptor, slot) }
      state.slots += 1
      return (descriptor, state.slots - 1)
    }
  }

  /// Frees a slot without readers. Bytes in the buffers of sockets stay valid.
  private func release(_ slot: Int) {
    guard let descriptor = state.withLock({ $0.descriptor }) else { return }
    // A slot that cannot be emptied is not used again.
    guard Self.punch(descriptor, at: off_t(slot) * off_t(Self.slotBytes)) else { return }
    state.withLock { $0.free.append(slot) }
  }
}

internal import Glibc
internal import Synchronization

/// The bytes of all segments of a stream, its rungs included, in one memfd: a stream takes one descriptor, however many
/// segments its window has. Each segment has a slot, with more room than a segment may fill; the file has holes between
/// them. What a slot holds goes back to the system when its last reader is gone.
///
/// Where files may not be large (`ulimit -f`), or memory cannot be punched out of them (some sandboxes), each segment has a
/// memfd of its own.
package final class SegmentStore: Sendable {
  /// Bytes of a slot: a segment is cut at 64 MiB, and the sample that goes beyond has at most 16.
  static let slotBytes = 128 << 20

  /// What /proc shows for those of streams.
  package static let ofStreams = "weir-segments"

  private let name: String
  /// Bounds what slots hold when their segments have left the window; nil where another does.
  private let leftovers: LeftoverBudget?
  private let closed: (@Sendable () -> Void)?
  private let state = Mutex(State())

  private struct State {
    /// Opened for the first segment.
    var descriptor: CInt?
    var slots = 0
    /// Slots that hold nothing and may be taken again.
    var free: [Int] = []
  }

  /// `name` is what /proc shows for the descriptor. `closed` is called when all is given back.
  package init(name: String, leftovers: LeftoverBudget? = nil, closed: (@Sendable () -> Void)? = nil) {
    self.name = name
    self.leftovers = leftovers
    self.closed = closed
  }

  deinit {
    if let descriptor = state.withLock({ $0.descriptor }) { Glibc.close(descriptor) }
    closed?()
  }

  /// Whether one file can hold all segments, and give back the memory of some.
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

  /// A slot without bytes, as an empty file. Throws when the system gives no descriptor.
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

  /// Nobody reads the slot any more. Bytes that are still on their way in sockets' buffers stay there.
  private func release(_ slot: Int) {
    guard let descriptor = state.withLock({ $0.descriptor }) else { return }
    // A slot that cannot be emptied is not used again.
    guard Self.punch(descriptor, at: off_t(slot) * off_t(Self.slotBytes)) else { return }
    state.withLock { $0.free.append(slot) }
  }
}

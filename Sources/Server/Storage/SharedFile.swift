internal import Glibc
package import NIOCore
internal import NIOPosix
internal import Synchronization

/// A file with many readers: a segment's slot of a memfd, a recording, or a time-shift buffer. It is closed with the last
/// reference. A holder of a `FileRange` can thus read all of it, even after the range left a window or the file was
/// unlinked. Reads always give an offset (`pread`, `sendfile`); the position of the descriptor is not used.
package final class SharedFile: Sendable {
  /// Where the bytes are, and thus which threads may read them.
  package enum Kind: Sendable {
    /// A memfd. Reading never blocks, so event loops read and send it.
    case memory
    /// A file system. Reading may block on a disk, so only a thread pool reads it.
    case disk
  }

  /// Valid while this object lives.
  package let descriptor: CInt
  package let kind: Kind
  /// The first byte of this file within the descriptor's file: offset 0 of its ranges.
  package let base: Int
  /// Set for a file on disk whose bytes can move under its readers. Offsets of ranges are relative to it.
  package let origin: FileOrigin?
  /// For a live segment: how long its memory is in use.
  let tenure: SegmentTenure?
  /// The address of the mapping. 0: not mapped yet, 1: cannot be mapped.
  private let mapping = Atomic<UInt>(0)

  /// Frees a file that is a part of the descriptor's file.
  private let giveBack: (@Sendable () -> Void)?
  /// Called after the descriptor was closed.
  private let closed: (@Sendable () -> Void)?

  /// The mapped bytes of a memory file: more than a segment (64 MiB) with its heads.
  private static let mappedBytes = 80 << 20

  /// Takes over the descriptor and closes it. `closed` is called after that.
  package init(
    taking descriptor: CInt, kind: Kind, origin: FileOrigin? = nil, tenure: SegmentTenure? = nil,
    closed: (@Sendable () -> Void)? = nil
  ) {
    self.descriptor = descriptor
    self.kind = kind
    self.origin = origin
    self.tenure = tenure
    self.closed = closed
    base = 0
    giveBack = nil
  }

  /// Another view of a file on disk, with the same descriptor. Its offsets are relative to byte `shift`.
  package init(_ whole: SharedFile, shiftedBy shift: Int) {
    descriptor = whole.descriptor
    kind = whole.kind
    base = whole.base
    origin = FileOrigin(shift: shift, isFixed: true)
    tenure = nil
    closed = nil
    giveBack = { withExtendedLifetime(whole) {} }
  }

  /// The part of a memfd from `base`, a multiple of the page size. `giveBack` is called when the last reader is gone; it keeps
  /// the descriptor open until then.
  package init(
    at base: Int, of descriptor: CInt, tenure: SegmentTenure? = nil, giveBack: @escaping @Sendable () -> Void
  ) {
    self.descriptor = descriptor
    self.base = base
    self.tenure = tenure
    self.giveBack = giveBack
    kind = .memory
    origin = nil
    closed = nil
  }

  /// The memory is needed: connections that send the file to viewers must close.
  package var isCalledIn: Bool { tenure?.isCalledIn ?? false }

  /// The bytes never move, so that the kernel can send them: what it has sent cannot be taken back.
  package var isFixed: Bool { origin?.isFixed ?? true }

  /// The result of a read.
  package enum ReadOutcome {
    case read(ByteBuffer)
    /// The bytes are moving; try again shortly.
    case moving
    /// The disk failed; `code` is errno.
    case failed(code: CInt)
  }

  /// Reads up to `count` bytes at `offset`; fewer at the end of the file. Blocks on the disk.
  package func read(at offset: Int, count: Int) -> ReadOutcome {
    let place = base &+ offset
    guard let origin else { return read(at: place, count) }
    return origin.read { shift in read(at: place &+ shift, count) } ?? .moving
  }

  private func read(at place: Int, _ count: Int) -> ReadOutcome {
    do throws(StorageError) {
      return .read(try File(descriptor).read(at: place, count: count))
    } catch {
      return .failed(code: error.errno)
    }
  }

  /// The address of `range` for the kernel: one `sendmsg` can send many small ranges without a copy. Do not read through it:
  /// when the file was truncated, the kernel returns EFAULT, but a load would trap. Nil for files on disk and for ranges
  /// outside of the mapping. Memory files are mapped at the first use.
  package func kernelAddress(of range: FileRange) -> UnsafeRawPointer? {
    guard kind == .memory, range.offset >= 0, range.offset <= Self.mappedBytes,
      range.length <= Self.mappedBytes &- range.offset
    else { return nil }
    var address = mapping.load(ordering: .acquiring)
    if address == 0 {
      address = Self.map(descriptor, from: base)
      let (won, found) = mapping.compareExchange(
        expected: 0, desired: address, ordering: .acquiringAndReleasing)
      if !won {
        Self.unmap(address)
        address = found
      }
    }
    return address == 1 ? nil : UnsafeRawPointer(bitPattern: address)?.advanced(by: range.offset)
  }

  private static func map(_ descriptor: CInt, from base: Int) -> UInt {
    let address = mmap(nil, mappedBytes, PROT_READ, MAP_SHARED, descriptor, off_t(base))
    return address == MAP_FAILED ? 1 : UInt(bitPattern: address)
  }

  private static func unmap(_ address: UInt) {
    if address > 1 { munmap(UnsafeMutableRawPointer(bitPattern: address), mappedBytes) }
  }

  deinit {
    Self.unmap(mapping.load(ordering: .acquiring))
    tenure?.end()
    if let giveBack { return giveBack() }
    let (descriptor, closed) = (descriptor, closed)
    switch kind {
    case .memory:
      Glibc.close(descriptor)
      closed?()
    case .disk:
      // The last close of an unlinked file frees its blocks, which blocks on the disk.
      NIOSingletons.posixBlockingThreadPool.submit { _ in
        Glibc.close(descriptor)
        closed?()
      }
    }
  }
}

/// A range of a file, in bytes. These bytes are complete and never change.
package struct FileRange: Sendable {
  package var file: SharedFile
  package var offset: Int
  package var length: Int

  package init(file: SharedFile, offset: Int, length: Int) {
    self.file = file
    self.offset = offset
    self.length = length
  }

  /// The offset in the descriptor's file.
  package var position: Int { file.base &+ offset }
}

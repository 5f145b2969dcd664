internal import Glibc
package import NIOCore
internal import NIOPosix
internal import Synchronization

/// A file with many readers: a segment's slot of a memfd, a recording, a rewind spool. It is given back when the last
/// reference goes, so that whoever holds a `FileRange` can read to its end, whatever was removed from a window or
/// unlinked meanwhile. Reads always name their offset (`pread`, `sendfile`); the descriptor's own position means
/// nothing.
package final class SharedFile: Sendable {
  /// Where the bytes are, which decides who may read them.
  package enum Kind: Sendable {
    /// A memfd: reading copies memory and never waits, so event loops read and send it themselves.
    case memory
    /// A file system: reading may wait for a disk, so only a thread pool reads it.
    case disk
  }

  /// Valid for as long as this object lives.
  package let descriptor: CInt
  package let kind: Kind
  /// Where in the descriptor's file this one begins, in bytes: offset 0 of its ranges.
  package let base: Int
  /// Set for a file on disk whose bytes can be pushed back under its readers; offsets of ranges count from there.
  package let origin: FileOrigin?
  /// Of a live segment: how long its memory is taken.
  let tenure: SegmentTenure?
  /// Where the file is mapped: 0 before the first use, 1 if it cannot be.
  private let mapping = Atomic<UInt>(0)

  /// Gives back a file that is a part of its descriptor's.
  private let giveBack: (@Sendable () -> Void)?
  /// Called once the descriptor is closed.
  private let closed: (@Sendable () -> Void)?

  /// How much of a memory file is mapped: more than a segment can have (64 MiB) and its heads.
  private static let mappedBytes = 80 << 20

  /// Takes the descriptor over: nobody else closes it from here on. `closed` is called once it is closed.
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

  /// A file on disk once more, by the same descriptor: its offsets count from that many bytes on.
  package init(_ whole: SharedFile, shiftedBy shift: Int) {
    descriptor = whole.descriptor
    kind = whole.kind
    base = whole.base
    origin = FileOrigin(shift: shift)
    tenure = nil
    closed = nil
    giveBack = { withExtendedLifetime(whole) {} }
  }

  /// The part of a memfd that begins at `base`, a multiple of the page size. `giveBack` is called once nobody reads it any
  /// more, and keeps the descriptor open until then.
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

  /// Its memory is needed: whoever sends it to a viewer is to end that.
  package var isCalledIn: Bool { tenure?.isCalledIn ?? false }

  /// What became of an attempt to read.
  package enum ReadOutcome {
    case read(ByteBuffer)
    /// The bytes are being pushed back: to be tried again in a moment.
    case moving
    /// The disk does not give them; `code` is errno's.
    case failed(code: CInt)
  }

  /// Up to `count` bytes at `offset`; fewer at the end of the file. Waits for the disk.
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

  /// The bytes of `range` as an address to hand to the kernel, so that one `sendmsg` sends many small ranges without
  /// a copy of ours. Nobody else may follow it: where a file was cut short the kernel answers EFAULT, a load would
  /// trap. Nil for files on disk and where the range is not mapped. Memory files are mapped when first asked for.
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
      // The last close of an unlinked file frees its blocks, which waits for the disk.
      NIOSingletons.posixBlockingThreadPool.submit { _ in
        Glibc.close(descriptor)
        closed?()
      }
    }
  }
}

/// Bytes of a file that are complete and never change again. Offset and length are bytes.
package struct FileRange: Sendable {
  package var file: SharedFile
  package var offset: Int
  package var length: Int

  package init(file: SharedFile, offset: Int, length: Int) {
    self.file = file
    self.offset = offset
    self.length = length
  }

  /// Where it begins in the file that the descriptor stands for.
  package var position: Int { file.base &+ offset }
}

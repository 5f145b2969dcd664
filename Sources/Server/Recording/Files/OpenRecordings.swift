internal import Basics
internal import Glibc
internal import Storage
internal import Synchronization

/// The finished recordings being read. Each file is open once, for any number of readers. Its descriptor is charged to the budget
/// before it is opened and returned with the last reader.
final class OpenRecordings: Sendable {
  /// No descriptor is available for another file at present.
  struct Full: Error, Sendable {}

  /// Identifies a file: no other has the same inode while it is open.
  private struct Identity: Hashable {
    var device: UInt64
    var inode: UInt64

    init(_ status: stat) {
      device = UInt64(truncatingIfNeeded: status.st_dev)
      inode = UInt64(truncatingIfNeeded: status.st_ino)
    }
  }

  private struct Entry {
    weak var file: SharedFile?
  }

  let descriptors: DescriptorBudget
  private let entries = Mutex<[Identity: Entry]>([:])

  init(descriptors: DescriptorBudget = .unlimited) {
    self.descriptors = descriptors
  }

  /// Opens a regular file and returns it with its status; nil if there is none of that name. Waits for the disk.
  func open(_ name: String, in folder: RecordingFolder) throws(Full) -> (file: SharedFile, status: stat)? {
    guard let status = folder.status(of: name) else { return nil }
    if let file = entries.withLock({ $0[Identity(status)]?.file }) { return (file, status) }
    let claim = FileClaim(on: descriptors, for: .reading)
    guard claim.take() else { throw Full() }
    guard let (descriptor, opened) = folder.openFile(name, O_RDONLY) else {
      claim.giveBack()
      return nil
    }
    let mine = SharedFile(taking: descriptor, kind: .disk) { claim.giveBack() }
    let file = entries.withLock { entries in
      // Another thread may have opened it at the same time.
      if let other = entries[Identity(opened)]?.file { return other }
      entries = entries.filter { $0.value.file != nil }
      entries[Identity(opened)] = Entry(file: mine)
      return mine
    }
    return (file, opened)
  }
}

package import Base
package import Glibc
package import Storage
internal import Synchronization

/// The finished recordings being read. Each file is open once, for any number of readers. Its descriptor is charged to the budget
/// before it is opened and returned with the last reader.
package final class OpenRecordings: Sendable {
  /// No descriptor is available for another file at present.
  package struct Full: Error, Sendable {}

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

  package let descriptors: DescriptorBudget
  private let entries = Mutex<[Identity: Entry]>([:])
  /// Number of open files by the client that opened them. A lock of its own: a file may end while `entries` is held.
  private let held = Mutex<[NetworkAddress: Int]>([:])

  package init(descriptors: DescriptorBudget = .unlimited) {
    self.descriptors = descriptors
  }

  /// Opens a regular file and returns it with its status; nil if there is none of that name. Waits for the disk.
  ///
  /// - Parameter client: the client of the request. When three quarters of the places are taken, a client that holds half of them
  ///   opens no further file.
  package func open(
    _ name: String, in folder: RecordingFolder, for client: NetworkAddress? = nil
  ) throws(Full) -> (file: SharedFile, status: stat)? {
    guard let status = folder.status(of: name) else { return nil }
    if let file = entries.withLock({ $0[Identity(status)]?.file }) { return (file, status) }
    let claim = FileClaim(on: descriptors, for: .reading)
    guard mayOpen(client), claim.take() else { throw Full() }
    guard let (descriptor, opened) = folder.openFile(name, O_RDONLY) else {
      claim.giveBack()
      return nil
    }
    count(1, client)
    let mine = SharedFile(taking: descriptor, kind: .disk) { [self] in
      claim.giveBack()
      count(-1, client)
    }
    let file = entries.withLock { entries in
      // Another thread may have opened it at the same time.
      if let other = entries[Identity(opened)]?.file { return other }
      entries = entries.filter { $0.value.file != nil }
      entries[Identity(opened)] = Entry(file: mine)
      return mine
    }
    return (file, opened)
  }

  private func mayOpen(_ client: NetworkAddress?) -> Bool {
    guard let client, descriptors.openFiles * 4 >= descriptors.files * 3 else { return true }
    return held.withLock { $0[client, default: 0] } < max(1, descriptors.files / 2)
  }

  private func count(_ change: Int, _ client: NetworkAddress?) {
    guard let client else { return }
    held.withLock { held in
      let count = held[client, default: 0] + change
      held[client] = count > 0 ? count : nil
    }
  }
}

internal import Base
internal import Glibc
package import Storage

/// A file that a command works on, opened by path. Its calls wait for the disk.
package final class LockedFile {
  let path: String
  package let shared: SharedFile
  package private(set) var size: UInt64
  /// Permission bits of the file.
  let permissions: mode_t

  package var descriptor: CInt { shared.descriptor }

  package enum Access {
    case read
    /// Requires that no other process writes the file: recorders and finishers hold a lock.
    case change
  }

  package init(_ path: String, _ access: Access) throws(RecordingError) {
    let flags = access == .read ? O_RDONLY : O_RDWR
    let descriptor = open(path, flags | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw .unopened(path, errno: errno) }
    shared = SharedFile(taking: descriptor, kind: .disk)
    self.path = path
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      throw RecordingError("\(LogText.escaped(path)) is not a file")
    }
    if access == .change, !Self.lock(descriptor) {
      throw RecordingError("\(LogText.escaped(path)) is being written by another process; it is left as it is")
    }
    size = UInt64(clamping: status.st_size)
    permissions = status.st_mode & 0o7777
  }

  /// Repeats the attempt for 0.1 s. A child process that is being started holds its parent's descriptors until its own program
  /// begins, which takes milliseconds.
  private static func patiently(_ succeeds: () -> Bool) -> Bool {
    for _ in 0..<20 {
      if succeeds() { return true }
      usleep(5000)
    }
    return false
  }

  /// Takes the lock. False if another process holds it.
  private static func lock(_ descriptor: CInt) -> Bool {
    patiently { flock(descriptor, LOCK_EX | LOCK_NB) == 0 }
  }

  /// Throws if another process has the file open: inserted bytes would shift what that process writes or reads. Does nothing
  /// where the system cannot tell.
  func requireNoOther() throws(RecordingError) {
    // When another process opens the file during the lease, the system sends a signal, which would end this process.
    let before = signal(SIGIO, SIG_IGN)
    defer { signal(SIGIO, before) }
    let isAlone = Self.patiently {
      guard fcntl(descriptor, Self.setLease, CInt(F_WRLCK)) != 0 else {
        _ = fcntl(descriptor, Self.setLease, CInt(F_UNLCK))
        return true
      }
      return errno != EAGAIN
    }
    if isAlone { return }
    throw RecordingError(
      "\(LogText.escaped(path)) is open in another program, which may still be writing it; it is left as it is: "
        + "close it there and try again")
  }

  /// `F_SETLEASE` of linux/fcntl.h.
  private static let setLease: CInt = 1024

  /// Sets the size after a change.
  func noteSize(_ size: UInt64) { self.size = size }

  var reader: RecordingFileReader { RecordingFileReader(file: shared) }

  /// A reader whose offsets count from byte `start`.
  func reader(from start: UInt64) -> RecordingFileReader {
    start > 0 ? RecordingFileReader(file: SharedFile(shared, shiftedBy: Int(clamping: start))) : reader
  }
}

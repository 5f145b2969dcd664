internal import Base
internal import CMachine
internal import Glibc

/// How much room a folder's disk has, and how quick it is. Writes a file without a name, at most 32 MB for at most a second, so
/// nothing is left behind, also after a kill.
struct DiskTrial {
  /// Names of file systems.
  static let memory = "tmpfs"
  /// What is slow for recordings.
  static let slow = (bytesPerSecond: Int64(20_000_000), syncMicroseconds: Int64(100_000))

  private static let chunk = 1 << 20
  private static let mostChunks = 32
  /// Nanoseconds.
  private static let longest: Int64 = 1_000_000_000
  private static let syncs = 5

  /// In bytes, for this user.
  var free: Int64
  /// A file system worth a word; nil for an ordinary one.
  var system: String?
  /// Nil without room for a trial. Includes the time until the disk has it.
  var bytesPerSecond: Int64?
  /// Of 4 KB, in the middle of several.
  var syncMicroseconds: Int64?

  init(free: Int64, system: String? = nil, bytesPerSecond: Int64? = nil, syncMicroseconds: Int64? = nil) {
    (self.free, self.system) = (free, system)
    (self.bytesPerSecond, self.syncMicroseconds) = (bytesPerSecond, syncMicroseconds)
  }

  /// Nil if nothing can be written, with the reason in errno.
  init?(in folder: String, keepFree: Int64) {
    var status = statvfs()
    guard statvfs(folder, &status) == 0 else { return nil }
    let free = Int64(
      clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue)
    self.init(free: free, system: Self.name(of: weir_file_system(folder)))
    guard free > keepFree.addingReportingOverflow(Int64(Self.chunk * Self.mostChunks)).partialValue else { return }
    guard let descriptor = Self.nameless(in: folder) else { return nil }
    defer { close(descriptor) }
    guard write(descriptor) else { return nil }
  }

  private mutating func write(_ descriptor: CInt) -> Bool {
    let bytes = [UInt8](repeating: 0x5A, count: Self.chunk)
    let began = MonotonicTime.now()
    var chunks = 0
    while chunks < Self.mostChunks, MonotonicTime.now() &- began < Self.longest {
      guard Glibc.write(descriptor, bytes, bytes.count) == bytes.count else { return false }
      chunks += 1
    }
    guard fdatasync(descriptor) == 0 else { return false }
    let took = max(1, MonotonicTime.now() &- began)
    bytesPerSecond = Int64(chunks * Self.chunk) * 1_000_000 / max(1, took / 1000)
    var times: [Int64] = []
    for _ in 0..<Self.syncs {
      let began = MonotonicTime.now()
      guard Glibc.write(descriptor, bytes, 4096) == 4096, fdatasync(descriptor) == 0 else { return false }
      times.append(MonotonicTime.now() &- began)
    }
    syncMicroseconds = times.sorted()[Self.syncs / 2] / 1000
    return true
  }

  /// A file that goes with its descriptor. Where the file system has none, one whose name is removed at once.
  private static func nameless(in folder: String) -> CInt? {
    // __O_TMPFILE | O_DIRECTORY of bits/fcntl-linux.h, which Swift does not see.
    let temporary: CInt = 0o20_000_000 | O_DIRECTORY
    let descriptor = open(folder, O_RDWR | temporary | O_CLOEXEC, 0o600)
    if descriptor >= 0 { return descriptor }
    let path = "\(folder)/.weir-doctor-\(getpid())"
    let named = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
    guard named >= 0 else { return nil }
    unlink(path)
    return named
  }

  /// Magic numbers of statfs(2).
  private static func name(of kind: UInt) -> String? {
    switch kind {
    case 0x0102_1994: memory
    case 0x6969: "nfs"
    case 0xFF53_4D42, 0xFE53_4D42: "smb"
    case 0x6573_5546: "fuse"
    case 0x794C_7630: "overlayfs"
    default: nil
    }
  }
}

internal import Glibc
internal import Settings

/// Whether the folders that weir writes to are there, have room, and are quick enough.
enum FolderCheck {
  /// Bits a second: a stream of 1080p.
  private static let usualRate: Int64 = 6_000_000

  static func findings(_ configuration: ServerConfiguration) -> [Finding] {
    let folders: [(SettingName, String?)] = [
      ("record", configuration.recordingsFolder), ("state", configuration.stateFolder),
      ("segments", configuration.segmentsFolder),
    ]
    return folders.compactMap { setting, path in
      path.map { finding("\($0) (\(setting.text))", $0, keepFree: configuration.keepFree) }
    }
  }

  private static func finding(_ subject: String, _ path: String, keepFree: Int64) -> Finding {
    var (status, place) = (stat(), path)
    if stat(path, &status) != 0 {
      place = parent(of: path)
      guard errno == ENOENT, stat(place, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
        return .problem("folder", subject, "is not there, nor is \(place)", "make it: mkdir -p \(path)")
      }
    } else if status.st_mode & S_IFMT != S_IFDIR {
      return .problem("folder", subject, "is a file", "name another folder")
    }
    guard access(place, W_OK | X_OK) == 0 else {
      let reason = String(cString: strerror(errno))
      return .problem(
        "folder", subject, "user \(geteuid()) cannot write there: \(reason)",
        "change its permissions, or try as weir's user")
    }
    guard let trial = DiskTrial(in: place, keepFree: keepFree) else {
      return .problem(
        "folder", subject, "nothing can be written there: \(String(cString: strerror(errno)))", "mend the disk")
    }
    return judged(subject, trial, keepFree: keepFree)
  }

  static func judged(_ subject: String, _ trial: DiskTrial, keepFree: Int64) -> Finding {
    let hours = max(0, trial.free - keepFree) / (usualRate / 8 * 3600)
    let room = "\(gigabytes(trial.free)) free (\(hours) h at 6 Mbit/s)"
    guard trial.free > keepFree else {
      return .problem(
        "folder", subject, "\(room): recording stops below \(gigabytes(keepFree))",
        "delete what is not needed, or lower --keep-free")
    }
    guard let speed = trial.bytesPerSecond, let sync = trial.syncMicroseconds else {
      return .ok("folder", subject, "\(room); no trial of its speed, for want of room")
    }
    let found =
      "\(trial.system.map { "\($0), " } ?? "")\(room), \(speed / 1_000_000) MB/s, a sync takes"
      + " \(sync / 1000).\(sync / 100 % 10) ms"
    if trial.system == DiskTrial.memory {
      return .advice("folder", subject, found, "it is gone with the next start of the machine; name one on a disk")
    }
    if speed < DiskTrial.slow.bytesPerSecond || sync > DiskTrial.slow.syncMicroseconds {
      return .advice(
        "folder", subject, found, "that is slow for recordings: name another disk, or record fewer streams")
    }
    return .ok("folder", subject, found)
  }

  private static func gigabytes(_ bytes: Int64) -> String { "\(bytes / 1_000_000_000).\(bytes / 100_000_000 % 10) GB" }

  private static func parent(of path: String) -> String {
    let trimmed = path.hasSuffix("/") ? path.dropLast() : path[...]
    guard let slash = trimmed.lastIndex(of: "/") else { return "." }
    return slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
  }
}

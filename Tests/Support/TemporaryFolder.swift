internal import Glibc

/// A folder of its own for a test, removed with it.
package final class TemporaryFolder: Sendable {
  package enum Place: String, Sendable, CaseIterable {
    /// A file system of the disk.
    case disk = "/var/tmp"
    /// tmpfs, where no room can be inserted into a file.
    case memory = "/dev/shm"
  }

  /// The place gave no folder.
  package struct NotThere: Error { let folder: String }

  package let path: String

  package init(_ place: Place = .disk) throws {
    var template = Array("\(place.rawValue)/weir-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw NotThere(folder: place.rawValue) }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    // A catalogue that is being closed just then may write once more.
    for _ in 0..<100 {
      Self.removeContents(of: path)
      if rmdir(path) == 0 { return }
      sched_yield()
    }
  }

  private static func removeContents(of path: String) {
    guard let listing = opendir(path) else { return }
    var names: [String] = []
    while let entry = readdir(listing) {
      names.append(
        withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    }
    closedir(listing)
    for name in names where name != "." && name != ".." {
      let path = "\(path)/\(name)"
      if unlink(path) != 0 {
        removeContents(of: path)
        rmdir(path)
      }
    }
  }

  /// What of it this process has open, by the kernel's names: those of removed files end with ` (deleted)`.
  package var openFiles: [String] {
    guard let listing = opendir("/proc/self/fd") else { return [] }
    defer { closedir(listing) }
    var found: [String] = []
    while let entry = readdir(listing) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      var target = [UInt8](repeating: 0, count: 4096)
      let length = target.withUnsafeMutableBytes { room in
        room.baseAddress.map {
          readlink("/proc/self/fd/\(name)", $0.assumingMemoryBound(to: CChar.self), room.count)
        } ?? 0
      }
      guard length > 0 else { continue }
      let path = String(decoding: target.prefix(length), as: UTF8.self)
      if path.hasPrefix(self.path), path.contains(".mp4") { found.append(path) }
    }
    return found
  }

  /// Whether the file system is one that can insert room at the front of a file: ext4 or XFS.
  package func canInsert() async throws -> Bool {
    ["ef53", "58465342"].contains(try await run("stat -f -c %t \(path)").filter { !$0.isWhitespace })
  }
}

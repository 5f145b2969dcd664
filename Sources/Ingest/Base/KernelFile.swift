internal import Glibc

/// Reads files of /proc and /sys. Their size is unknown before they are read.
package enum KernelFile {
  /// In bytes; longer than any of the files that are read.
  private static let longest = 64 << 10

  /// The text of a file, up to 64 KiB. Nil when it cannot be opened.
  package static func text(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    let bytes = [UInt8](unsafeUninitializedCapacity: longest) { room, count in
      count = 0
      while count < room.count {
        let more = Glibc.read(descriptor, room.baseAddress.map { $0 + count }, room.count - count)
        guard more > 0 else { break }
        count += more
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

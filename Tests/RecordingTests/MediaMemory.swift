import Glibc

/// What this process keeps of media in memory, by what the kernel says.
enum MediaMemory {
  /// Bytes of the segments that this process keeps in memory.
  static var bytes: Int {
    guard let listing = opendir("/proc/self/fd") else { return 0 }
    defer { closedir(listing) }
    var files: [UInt: Int] = [:]
    while let entry = readdir(listing) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      var target = [CChar](repeating: 0, count: 100)
      var status = stat()
      guard let number = CInt(name), readlink("/proc/self/fd/\(name)", &target, 99) > 0,
        String(decoding: target.map { UInt8(bitPattern: $0) }, as: UTF8.self).hasPrefix("/memfd:weir-segment"),
        fstat(number, &status) == 0
      else { continue }
      files[UInt(status.st_ino)] = Int(status.st_blocks) * 512
    }
    return files.values.reduce(0, +)
  }
}

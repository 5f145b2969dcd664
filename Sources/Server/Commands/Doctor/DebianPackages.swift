internal import Glibc

/// The packages that Debian's package manager has installed.
enum DebianPackages {
  /// In bytes, of a line of the list; longer ones are descriptions.
  private static let longestLine = 1024

  /// Versions by the names of those that are installed. Empty on a system without this package manager.
  static func versions(of names: [String], in path: String = "/var/lib/dpkg/status") -> [String: String] {
    guard let file = fopen(path, "re") else { return [:] }
    defer { fclose(file) }
    let wanted = Set(names)
    var found: [String: String] = [:]
    var (name, isInstalled) = ("", false)
    var room = [CChar](repeating: 0, count: longestLine)
    while fgets(&room, CInt(room.count), file) != nil {
      let line = String(decoding: room.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
      if let value = line.value(of: "Package: ") { (name, isInstalled) = (value, false) }
      if let value = line.value(of: "Status: ") { isInstalled = value.hasSuffix(" installed") }
      if isInstalled, wanted.contains(name), let value = line.value(of: "Version: ") { found[name] = value }
    }
    return found
  }
}

extension String {
  /// What stands behind a field's name; nil for another field.
  fileprivate func value(of field: String) -> String? {
    hasPrefix(field) ? String(dropFirst(field.count).prefix { !$0.isNewline }) : nil
  }
}

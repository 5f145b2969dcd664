import Glibc

/// Files of `Tests/Fixtures`. The unit tests' own reader needs the testing library.
enum FixtureFile {
  /// All bytes of a file, by its path within the folder.
  static func bytes(_ path: String, file: String = #filePath) -> [UInt8] {
    let tests = file.split(separator: "/").dropLast(2).joined(separator: "/")
    guard let handle = fopen("/\(tests)/Fixtures/\(path)", "r") else { fatalError("no fixture \(path)") }
    defer { fclose(handle) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = fread(&chunk, 1, chunk.count, handle)
      if count == 0 { return bytes }
      bytes += chunk[..<count]
    }
  }
}

internal import Glibc
package import Testing

/// Text that was looked at once and must stay as it is. `WEIR_UPDATE_GOLDEN=1` writes the files anew; the change is
/// then read in the diff.
package enum Golden {
  /// Compares with `Tests/Golden/{name}`.
  package static func check(
    _ text: String, _ name: String, file: String = #filePath, location: SourceLocation = #_sourceLocation
  ) throws {
    let tests = file.split(separator: "/").reversed().drop { $0 != "Tests" }.reversed().joined(separator: "/")
    let path = "/\(tests)/Golden/\(name)"
    if getenv("WEIR_UPDATE_GOLDEN") != nil {
      guard let handle = fopen(path, "w") else { throw Missing(path: path) }
      fputs(text, handle)
      fclose(handle)
      return
    }
    let expected = try read(path)
    #expect(text == expected, "differs from Tests/Golden/\(name)", sourceLocation: location)
  }

  private static func read(_ path: String) throws -> String {
    guard let handle = fopen(path, "r") else { throw Missing(path: path) }
    defer { fclose(handle) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = fread(&chunk, 1, chunk.count, handle)
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes += chunk[..<count]
    }
  }

  /// A golden file that is not there.
  package struct Missing: Error {
    package var path: String
  }
}

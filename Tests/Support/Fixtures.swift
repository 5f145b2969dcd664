internal import Glibc
package import NIOCore

/// The files of `Tests/Fixtures`: bytes that other programs made (`Tests/Fixtures/README.md`).
package enum Fixtures {
  /// All bytes of a file, by its path within the folder: `rtmp/NAME.rtmp`, `mp4/NAME.mp4`.
  package static func bytes(_ path: String, file: String = #filePath) throws -> [UInt8] {
    let tests = file.split(separator: "/").reversed().drop { $0 != "Tests" }.reversed().joined(separator: "/")
    guard let handle = fopen("/\(tests)/Fixtures/\(path)", "r") else { throw Golden.Missing(path: path) }
    defer { fclose(handle) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = fread(&chunk, 1, chunk.count, handle)
      if count == 0 { return bytes }
      bytes += chunk[..<count]
    }
  }

  /// How the bytes of a fixture arrive.
  package enum Arrival: Sendable, CaseIterable, CustomStringConvertible {
    case whole, byByte, bySeven, inRandomPieces

    package var description: String { name }

    private var name: String {
      switch self {
      case .whole: "whole"
      case .byByte: "1 byte at a time"
      case .bySeven: "7 bytes at a time"
      case .inRandomPieces: "in pieces of 1 to 2000 bytes"
      }
    }

    /// The bytes in their pieces. Random lengths are the same each time.
    package func pieces(of bytes: [UInt8]) -> [ByteBuffer] {
      var pieces: [ByteBuffer] = []
      var state: UInt64 = 20_261_125
      var rest = bytes[...]
      while !rest.isEmpty {
        let length: Int
        switch self {
        case .whole: length = rest.count
        case .byByte: length = 1
        case .bySeven: length = 7
        case .inRandomPieces:
          state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
          length = 1 + Int(state >> 33) % 2000
        }
        pieces.append(ByteBuffer(bytes: rest.prefix(length)))
        rest = rest.dropFirst(length)
      }
      return pieces
    }
  }
}

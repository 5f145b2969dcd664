internal import Glibc
internal import NIOPosix

/// Runs a command line and gives what it wrote, without blocking the test's thread.
package func run(_ command: String) async throws -> String {
  try await NIOThreadPool.singleton.runIfActive {
    guard let pipe = popen(command, "r") else { return "" }
    defer { pclose(pipe) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = fread(&chunk, 1, chunk.count, pipe)
      if count == 0 { return String(decoding: bytes, as: UTF8.self) }
      bytes += chunk[..<count]
    }
  }
}

import Glibc
import SRT
import Testing

/// libsrt comes from libavformat as well. A second copy, of the flavour with OpenSSL, has the same symbols and crashes
/// at the end of the process.
@Suite struct SRTLibraryTests {
  @Test func oneLibSRTIsLoadedTheOneWithGnuTLS() throws {
    _ = SRTWorker(descriptor: -1, udp: -1)
    let file = try #require(fopen("/proc/self/maps", "r"))
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 4096)
    var paths: Set<String> = []
    while fgets(&line, Int32(line.count), file) != nil {
      let text = String(decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      if text.contains("/libsrt"), !text.contains("/libsrtp") {
        paths.insert(text.split(separator: " ").last.map(String.init) ?? "")
      }
    }
    #expect(paths.count == 1 && paths.allSatisfy { $0.contains("libsrt-gnutls") }, "\(paths)")
  }
}

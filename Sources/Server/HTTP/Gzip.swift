internal import CZlib
internal import NIOCore

/// Compression of text for clients that accept it. Media is never compressed.
enum Gzip {
  /// Smaller bodies fit into one packet without compression, in bytes.
  static let smallestBody = 256
  /// Bytes. Bodies up to this size are compressed on the event loop (about half a millisecond), larger ones on a thread pool.
  static let largestInline = 32 * 1024

  /// The bytes as a gzip member (RFC 1952). Nil when zlib gets no memory; the caller then sends the plain bytes.
  static func compressed(_ bytes: ByteBuffer, level: Int32 = 6) -> ByteBuffer? {
    guard let count = UInt32(exactly: bytes.readableBytes) else { return nil }
    var stream = z_stream()
    guard gzip_deflate_init(&stream, level) == Z_OK else { return nil }
    defer { deflateEnd(&stream) }
    var output = ByteBuffer()
    let bound = Int(deflateBound(&stream, UInt(count)))
    let result = bytes.withUnsafeReadableBytes { input in
      output.writeWithUnsafeMutableBytes(minimumWritableBytes: bound) { room in
        stream.next_in = UnsafeMutablePointer(mutating: input.bindMemory(to: UInt8.self).baseAddress)
        stream.avail_in = count
        stream.next_out = room.bindMemory(to: UInt8.self).baseAddress
        stream.avail_out = UInt32(clamping: room.count)
        return deflate(&stream, Z_FINISH) == Z_STREAM_END ? Int(clamping: stream.total_out) : 0
      }
    }
    return result > 0 ? output : nil
  }

  /// Whether Accept-Encoding (RFC 9110 §12.5.3) lists gzip, or `*`, with a weight above zero.
  static func isAccepted(_ acceptEncoding: String) -> Bool {
    var answer = false
    for item in acceptEncoding.utf8.split(separator: UInt8(ascii: ",")) {
      let parts = item.split(separator: UInt8(ascii: ";")).map { String(Substring($0)).filter { $0 != " " } }
      guard let coding = parts.first?.lowercased(), coding == "gzip" || coding == "x-gzip" || coding == "*" else {
        continue
      }
      let refused = parts.dropFirst().contains { weight in
        guard weight.lowercased().hasPrefix("q=0") else { return false }
        return weight.dropFirst(3).allSatisfy { $0 == "." || $0 == "0" }
      }
      // An entry for gzip takes precedence over `*`.
      if coding != "*" { return !refused }
      answer = !refused
    }
    return answer
  }
}

extension RequestFields {
  /// Whether the client accepts gzip.
  var acceptsGzip: Bool {
    guard known.contains(.acceptEncoding) else { return false }
    var answer = false
    forEach { key, value in
      guard key.count == 15, key.isField("accept-encoding") else { return true }
      answer = Self.startsWithGzip(value) || Gzip.isAccepted(String(copying: value))
      return false
    }
    return answer
  }

  /// Nearly all clients list it first and without a weight.
  private static func startsWithGzip(_ value: Span<UInt8>) -> Bool {
    value.count >= 4 && value.extracting(0..<4).isField("gzip") && (value.count == 4 || value[4] == UInt8(ascii: ","))
  }
}

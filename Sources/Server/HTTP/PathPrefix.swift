package import NIOCore

/// What the paths of this server begin with for clients (`PublicURL.path`), where a proxy has other things at the root of its name. Some
/// proxies take it off, others leave it: both are taken.
package enum PathPrefix {
  /// The target without the prefix; as it is, if it does not begin with it, or there is none.
  package static func removed(_ prefix: String, from target: ByteBuffer) -> ByteBuffer {
    let text = target.readableBytesUInt8Span
    let (start, length) = (TokenPrefix.startOfPath(text), prefix.utf8.count)
    guard length > 0, text.count &- start >= length else { return target }
    var index = start
    for byte in prefix.utf8 {
      guard text[index] == byte else { return target }
      index &+= 1
    }
    let isRoot = index == text.count || text[index] == UInt8(ascii: "?")
    guard isRoot || text[index] == UInt8(ascii: "/") else { return target }
    var rest = ByteBuffer()
    rest.reserveCapacity(text.count)
    rest.writeImmutableBuffer(target.getSlice(at: target.readerIndex, length: start) ?? ByteBuffer())
    if isRoot { rest.writeStaticString("/") }
    rest.writeImmutableBuffer(
      target.getSlice(at: target.readerIndex &+ index, length: text.count &- index) ?? ByteBuffer())
    return rest
  }
}

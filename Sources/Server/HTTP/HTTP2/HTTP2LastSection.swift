internal import NIOCore

/// The last field section of a connection, and the head that was made of it. A client sends the same bytes with each request
/// but for the path, and comparing them costs less than decoding them. Valid while the table of fields is the same.
struct HTTP2LastSection {
  /// Longer sections are decoded each time, since the last one is kept for each connection. In bytes.
  static let longest = 1024

  private struct Known {
    /// The bytes before the text of the path, and behind it; without a path that may differ, all bytes.
    let before: ByteBuffer
    let behind: ByteBuffer?
    let generation: Int
    let head: RequestHead
    /// Of all fields but the path, for `HTTPLimits.headerBytes`.
    let bytes: Int
  }

  /// What is known of a section.
  enum Found {
    case head(RequestHead)
    case tooLarge
    case malformed
  }

  private var known: Known?
  private var path = ByteBuffer()

  /// Nil when the section must be decoded.
  mutating func find(_ section: ByteBuffer, generation: Int, limit: Int) -> Found? {
    guard let known, known.generation == generation else { return nil }
    let bytes = section.readableBytesUInt8Span
    let before = known.before.readableBytesUInt8Span
    guard let behind = known.behind?.readableBytesUInt8Span else {
      return bytes.isEqual(to: before) ? .head(known.head) : nil
    }
    guard bytes.count > before.count &+ behind.count, bytes.extracting(first: before.count).isEqual(to: before),
      bytes.extracting(last: behind.count).isEqual(to: behind)
    else { return nil }
    var index = before.count
    guard let text = try? FieldSectionReader.text(bytes, &index), index == bytes.count &- behind.count else {
      return nil
    }
    let target: ByteBuffer
    if text.isCoded {
      guard text.range.count <= Self.longest else { return nil }
      // A new buffer only where the last one is still in use.
      if path.capacity > Self.longest { path = ByteBuffer() } else { path.clear() }
      guard HuffmanCode.standard.decode(bytes.extracting(text.range), into: &path) else { return nil }
      target = path
    } else {
      guard
        let slice = section.getSlice(at: section.readerIndex &+ text.range.lowerBound, length: text.range.count)
      else { return nil }
      target = slice
    }
    guard HTTP2HeadBuilder.isTarget(target) else { return .malformed }
    guard known.bytes &+ target.readableBytes <= limit else { return .tooLarge }
    return .head(known.head.asking(for: target))
  }

  /// Keeps a section that has changed no table, and whose request is complete.
  mutating func keep(_ section: ByteBuffer, _ head: RequestHead, _ builder: HTTP2HeadBuilder, generation: Int) {
    known = nil
    guard section.readableBytes <= Self.longest, builder.bytesWithoutPath <= Self.longest,
      head.target.readableBytes <= Self.longest
    else { return }
    var (before, behind) = (section, ByteBuffer?.none)
    if let place = builder.pathPlace {
      // The first byte names the path.
      guard
        let first = section.getSlice(at: section.readerIndex, length: place.lowerBound &+ 1),
        let last = section.getSlice(
          at: section.readerIndex &+ place.upperBound, length: section.readableBytes &- place.upperBound)
      else { return }
      (before, behind) = (first, ByteBuffer(bytes: last.readableBytesView))
    }
    // Copied: slices would keep whole read buffers.
    known = Known(
      before: ByteBuffer(bytes: before.readableBytesView), behind: behind, generation: generation, head: head,
      bytes: builder.bytesWithoutPath)
  }
}

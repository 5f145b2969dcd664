package import NIOCore

/// How long a finished movie is, by its own word.
package enum MovieDuration {
  /// From the first bytes of the file, a few hundred: `ftyp`, then `moov` that begins with `mvhd`. Nil when they do
  /// not begin like that.
  package static func read(_ head: ByteBuffer) -> MediaTime? {
    var head = head
    guard let fileType = box(&head), fileType.type == "ftyp", head.skip(fileType.size), let movie = box(&head),
      movie.type == "moov", let header = box(&head), header.type == "mvhd"
    else { return nil }
    return MovieReader.duration(head)
  }

  /// A box's header; its size without it.
  private static func box(_ buffer: inout ByteBuffer) -> (type: FourCC, size: Int)? {
    guard let size = buffer.readInteger(as: UInt32.self), let type = buffer.readInteger(as: UInt32.self), size >= 8
    else { return nil }
    return (FourCC(rawValue: type), Int(size) - 8)
  }
}

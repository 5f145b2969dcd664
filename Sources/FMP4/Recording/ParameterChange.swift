package import FMP4
package import NIOCore

/// A parameter change within a recording: the new init segment in a `free` box, which players skip.
package enum ParameterChange {
  package static func box(_ initSegment: InitSegment) -> ByteBuffer {
    let bytes = Array(initSegment.whole.readableBytesView)
    return .boxes(capacity: bytes.count + 8) { $0.box("free") { $0.bytes(bytes) } }
  }

  /// Bytes of a `free` box that show whether it is a parameter change.
  static let look = UInt64(BoxHeader.shortest)

  /// Whether a `free` box is a parameter change, by its first bytes. Other programs hide an `ftyp` in a `free` before
  /// the `moov` until the file is closed (hybrid MP4).
  static func begins(_ box: BoxView) -> Bool {
    (try? BoxHeader(box.payload, in: box.header.payload))?.type == "ftyp"
  }
}

package import NIOCore

/// VP8 (RFC 6386). Browsers send it; outputs do not carry it. Only key frames state the format. So the record is weir's own: width
/// and height (2 bytes each).
package enum VP8 {
  /// The format of a track. Two configurations are equal if key frames state the same size.
  package struct Configuration: VideoConfiguration, Hashable {
    package static let id = CodecID.vp8
    package static let name = "VP8"
    package static var sampleEntry: (type: FourCC, configuration: FourCC)? { nil }
    package static let isStatedByFrames = true

    package let format: VideoFormat

    private init(width: UInt16, height: UInt16) throws(CodecError) {
      format = try VideoFormat(
        width: Int64(width), height: Int64(height), chroma: .yuv420, lumaBitDepth: 8, chromaBitDepth: 8)
    }

    /// Reads a key frame (§9.1).
    package init(stream frame: ByteBuffer) throws(CodecError) {
      guard let size = try VP8.size(ofKeyFrame: frame) else {
        throw CodecError(.invalid, "a frame of VP8 that is no key frame states no format")
      }
      try self.init(width: size.width, height: size.height)
    }

    /// Reads the record that `record()` writes.
    package init(record: ByteBuffer) throws(CodecError) {
      var reader = try ByteReader(record, name: "VP8")
      try self.init(width: try reader.u16(), height: try reader.u16())
    }

    package func record() -> [UInt8] {
      [UInt8(format.width >> 8), UInt8(format.width & 255), UInt8(format.height >> 8), UInt8(format.height & 255)]
    }

    package static func record(inFrame frame: ByteBuffer) -> [UInt8]? {
      (try? Configuration(stream: frame)).map { $0.record() }
    }

    package static func fault(inFrame frame: ByteBuffer) -> CodecError? {
      do throws(CodecError) {
        _ = try VP8.accessUnit(frame)
        return nil
      } catch {
        return error
      }
    }

    package var codecString: String { "vp8" }

    /// The configuration of the last of these key frames, of each its beginning. Nil if it is the same.
    package func updated(withParameterSets sets: [[UInt8]]) -> Configuration? {
      guard let last = sets.last, let new = try? Configuration(stream: ByteBuffer(bytes: last)), new != self else {
        return nil
      }
      return new
    }

    package func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit? { try VP8.accessUnit(payload) }
    package func accessUnit(stream: ByteBuffer) throws(CodecError) -> AccessUnit? { try VP8.accessUnit(stream) }
  }

  /// Bytes of a key frame before its first partition: the frame's tag, the start code, the size.
  private static let headBytes = 10

  /// Whether decoding can begin with a frame.
  package static func isKeyFrame(_ frame: ByteBuffer) -> Bool {
    frame.getInteger(at: frame.readerIndex, as: UInt8.self).map { $0 & 1 == 0 } ?? false
  }

  /// Nil for a frame of another kind. The upper two bits of each side only ask for scaling.
  private static func size(ofKeyFrame frame: ByteBuffer) throws(CodecError) -> (width: UInt16, height: UInt16)? {
    guard frame.readableBytes > 0 else { throw CodecError(.truncated, "a frame of VP8 without a byte", offset: 0) }
    guard isKeyFrame(frame) else { return nil }
    let bytes = frame.getBytes(at: frame.readerIndex, length: min(frame.readableBytes, headBytes)) ?? []
    guard bytes.count == headBytes else {
      throw CodecError(.truncated, "a key frame of VP8 of \(bytes.count) bytes", offset: bytes.count)
    }
    guard bytes[3...5].elementsEqual([0x9D, 0x01, 0x2A]) else {
      throw CodecError(.invalid, "a key frame of VP8 without its start code", offset: 3)
    }
    func side(_ at: Int) -> UInt16 { (UInt16(bytes[at + 1]) << 8 | UInt16(bytes[at])) & 0x3FFF }
    return (side(6), side(8))
  }

  /// A sample: a frame. The beginning of a key frame is also its parameter set.
  static func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit {
    guard payload.readableBytes > 0 else { return AccessUnit(payload: payload, isSync: false, parameterSets: []) }
    guard try size(ofKeyFrame: payload) != nil else {
      return AccessUnit(payload: payload, isSync: false, parameterSets: [])
    }
    // A size that cannot be decoded is damage.
    _ = try Configuration(stream: payload)
    return AccessUnit(
      payload: payload, isSync: true,
      parameterSets: payload.getBytes(at: payload.readerIndex, length: headBytes).map { [$0] } ?? [])
  }
}

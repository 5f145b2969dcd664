package import NIOCore

/// VP9 as stored by "VP Codec ISO Media File Format Binding", version 1.0. Only key frames state the format. So the record is
/// weir's own: width and height (2 bytes each), then the content of the `vpcC` box, which lacks them.
package enum VP9 {
  /// The format of a track. Two configurations are equal if key frames state the same.
  package struct Configuration: VideoConfiguration, Hashable {
    package static let id = CodecID.vp9
    package static let name = "VP9"
    package static let sampleEntry: (type: FourCC, configuration: FourCC)? = ("vp09", "vpcC")
    package static let isStatedByFrames = true

    let header: KeyFrameHeader
    package let format: VideoFormat

    init(_ header: KeyFrameHeader) throws(CodecError) {
      self.header = header
      format = try header.format
    }

    /// Reads a key frame, or a superframe that begins with one.
    package init(stream frame: ByteBuffer) throws(CodecError) {
      guard let header = try KeyFrameHeader(frame: frame) else {
        throw CodecError(.invalid, "a frame of VP9 that is no key frame states no format")
      }
      try self.init(header)
    }

    /// Reads the record that `record()` writes.
    package init(record: ByteBuffer) throws(CodecError) {
      var reader = try ByteReader(record, name: "VP9")
      let (width, height) = (Int64(try reader.u16()), Int64(try reader.u16()))
      let box = ByteBuffer(bytes: try reader.bytes(reader.remaining))
      try self.init(try KeyFrameHeader(box: box, width: width, height: height))
    }

    /// Reads the payload of `vpcC`, with the size that its sample entry has.
    package init(boxed: ByteBuffer, size: (width: UInt16, height: UInt16)) throws(CodecError) {
      try self.init(try KeyFrameHeader(box: boxed, width: Int64(size.width), height: Int64(size.height)))
    }

    package static func record(inFrame frame: ByteBuffer) -> [UInt8]? {
      (try? Configuration(stream: frame)).map { $0.record() }
    }

    package static func fault(inFrame frame: ByteBuffer) -> CodecError? {
      do throws(CodecError) {
        _ = try KeyFrameHeader(frame: frame)?.format
        return nil
      } catch {
        return error
      }
    }

    package func record() -> [UInt8] {
      [UInt8(format.width >> 8), UInt8(format.width & 255), UInt8(format.height >> 8), UInt8(format.height & 255)]
        + boxed()
    }

    /// `VPCodecConfigurationBox` (§"VP Codec Configuration Box"), behind its header of version 1.
    package func boxed() -> [UInt8] {
      let points = header.color.points
      let depths = header.bitDepth << 4 | header.chroma.rawValue << 1 | (header.range == .full ? 1 : 0)
      return [
        1, 0, 0, 0, header.profile, header.level, depths, points.primaries, points.transfer, points.matrix, 0, 0,
      ]
    }

    /// "vp09." with profile, level and bit depth. What is optional follows if it is not the default.
    package var codecString: String {
      let text = "vp09.\(twoDigits(header.profile)).\(twoDigits(header.level)).\(twoDigits(header.bitDepth))"
      let points = header.color == .unknown ? ColorSpace.bt709.points : header.color.points
      let optional =
        ".\(twoDigits(header.chroma.rawValue)).\(twoDigits(points.primaries)).\(twoDigits(points.transfer))"
        + ".\(twoDigits(points.matrix)).\(header.range == .full ? "01" : "00")"
      return optional == ".01.01.01.01.00" ? text : text + optional
    }

    /// The configuration of the last of these key frames, of each its beginning. Nil if it is the same.
    package func updated(withParameterSets sets: [[UInt8]]) -> Configuration? {
      guard let last = sets.last, let new = try? Configuration(stream: ByteBuffer(bytes: last)), new != self else {
        return nil
      }
      return new
    }

    package func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit? { try VP9.accessUnit(payload) }
    package func accessUnit(stream: ByteBuffer) throws(CodecError) -> AccessUnit? { try VP9.accessUnit(stream) }
  }

  /// A sample: a frame, or a superframe (VP9 Annex B). The beginning of a key frame is also its parameter set.
  static func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit {
    guard payload.readableBytes > 0 else { return AccessUnit(payload: payload, isSync: false, parameterSets: []) }
    guard let header = try KeyFrameHeader(frame: payload) else {
      return AccessUnit(payload: payload, isSync: false, parameterSets: [])
    }
    // A size that cannot be served is damage.
    _ = try header.format
    let beginning = payload.getBytes(at: payload.readerIndex, length: min(payload.readableBytes, KeyFrameHeader.bytes))
    return AccessUnit(payload: payload, isSync: true, parameterSets: beginning.map { [$0] } ?? [])
  }

  /// Whether decoding can begin with a frame, or with a superframe that begins with one.
  package static func isKeyFrame(_ frame: ByteBuffer) -> Bool { (try? KeyFrameHeader(frame: frame)) != nil }
}

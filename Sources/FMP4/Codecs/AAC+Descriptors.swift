package import NIOCore

/// Content of an `esds` box (ISO/IEC 14496-14 §5.6): an AudioSpecificConfig inside descriptors (ISO/IEC 14496-1
/// §7.2.6).
extension AAC.Configuration {
  /// Descriptor tags, ISO/IEC 14496-1 table 1.
  private enum Tag: UInt8 {
    case stream = 3, decoderConfiguration, decoderSpecificInfo, syncLayerConfiguration
  }

  private static let versionAndFlags: [UInt8] = [0, 0, 0, 0]
  /// `ES_ID` (0 in a file) and flags.
  private static let streamFields: [UInt8] = [0, 0, 0]
  private static let decoderFields: [UInt8] =
    [0x40]  // objectTypeIndication: ISO/IEC 14496-3
    + [0x15]  // streamType 5 (audio), upStream 0, reserved 1
    + [0, 0, 0]  // bufferSizeDB
    + [0, 0, 0, 0, 0, 0, 0, 0]  // maxBitrate and avgBitrate: unknown
  /// `predefined`: reserved for MP4.
  private static let syncLayerFields: [UInt8] = [2]

  package init(boxed: ByteBuffer) throws(CodecError) {
    var rest = boxed
    guard rest.readSlice(length: Self.versionAndFlags.count) != nil, var stream = Self.descriptor(.stream, &rest),
      stream.readSlice(length: Self.streamFields.count) != nil,
      var decoder = Self.descriptor(.decoderConfiguration, &stream),
      decoder.readSlice(length: Self.decoderFields.count) != nil,
      let configuration = Self.descriptor(.decoderSpecificInfo, &decoder)
    else { throw CodecError(.invalid, "an esds without an AudioSpecificConfig") }
    try self.init(record: configuration)
  }

  package func boxed() -> [UInt8] {
    let specific = Self.descriptor(.decoderSpecificInfo, audioSpecificConfig)
    let decoder = Self.descriptor(.decoderConfiguration, Self.decoderFields + specific)
    let syncLayer = Self.descriptor(.syncLayerConfiguration, Self.syncLayerFields)
    return Self.versionAndFlags + Self.descriptor(.stream, Self.streamFields + decoder + syncLayer)
  }

  /// A descriptor with its size in the four-byte form (§8.3.3).
  private static func descriptor(_ tag: Tag, _ body: [UInt8]) -> [UInt8] {
    [tag.rawValue] + [21, 14, 7].map { 128 | UInt8(body.count >> $0 & 127) } + [UInt8(body.count & 127)] + body
  }

  private static func descriptor(_ tag: Tag, _ buffer: inout ByteBuffer) -> ByteBuffer? {
    guard buffer.readInteger(as: UInt8.self).flatMap(Tag.init) == tag else { return nil }
    var size = 0
    for _ in 0..<4 {
      guard let byte = buffer.readInteger(as: UInt8.self) else { return nil }
      size = size << 7 | Int(byte & 127)
      if byte & 128 == 0 { break }
    }
    return buffer.readSlice(length: size)
  }
}

internal import NIOCore

extension Codec {
  /// Reads what `writeSampleEntry` wrote (ISO/IEC 14496-12 §12.1.3, §12.2.3): a sample entry's type and payload.
  /// Throws `.unsupported` for another type, `.invalid` when the configuration is not there.
  init(sampleEntry entry: BoxView) throws(CodecError) {
    switch entry.type {
    case "avc1": self = .h264(try H264.Configuration(record: try Self.picture(entry, "avcC")))
    case "hvc1": self = .hevc(try HEVC.Configuration(record: try Self.picture(entry, "hvcC")))
    case "av01": self = .av1(try AV1.Configuration(record: try Self.picture(entry, "av1C")))
    case "mp4a":
      let descriptors = try Self.child(entry, "esds", behind: 28)
      guard let configuration = Self.audioSpecificConfig(descriptors) else {
        throw CodecError(.invalid, "an esds without an AudioSpecificConfig")
      }
      self = .aac(try AAC.Configuration(audioSpecificConfig: configuration))
    case "Opus": self = .opus(try Opus.Configuration(record: try Self.child(entry, "dOps", behind: 28)))
    default: throw CodecError(.unsupported, "a sample entry of type \(entry.type)")
    }
  }

  private static func picture(_ entry: BoxView, _ record: FourCC) throws(CodecError) -> ByteBuffer {
    try child(entry, record, behind: 78)
  }

  /// A box within the entry, behind its own fields.
  private static func child(_ entry: BoxView, _ type: FourCC, behind size: Int) throws(CodecError) -> ByteBuffer {
    var payload = entry.payload
    guard payload.skip(size), let child = payload.firstBox(type) else {
      throw CodecError(.invalid, "a sample entry \(entry.type) without \(type)")
    }
    return child
  }

  /// The colours of a sample entry that the codec's own configuration does not state; nil when there are none.
  func statedColor(sampleEntry entry: BoxView) -> PictureColor? {
    var payload = entry.payload
    guard kind == .video, payload.skip(78) else { return nil }
    var color = PictureColor()
    for box in BoxReader(payload) {
      var fields = box.payload
      switch box.type {
      case "colr":
        if let description = fields.readColorInformation(), description != picture?.color {
          color.description = description
        }
      case "mdcv": color.masteringDisplay = fields.readMasteringDisplay()
      case "clli": color.lightLevel = fields.readContentLightLevel()
      default: break
      }
    }
    return color == PictureColor() ? nil : color
  }

  /// Follows the descriptors of ISO/IEC 14496-1 §7.2.6 down to the decoder's own.
  private static func audioSpecificConfig(_ box: ByteBuffer) -> ByteBuffer? {
    var box = box
    guard box.skip(4), var stream = descriptor(&box, tag: 0x03), stream.skip(3),
      var decoder = descriptor(&stream, tag: 0x04), decoder.skip(13)
    else { return nil }
    return descriptor(&decoder, tag: 0x05)
  }

  private static func descriptor(_ buffer: inout ByteBuffer, tag: UInt8) -> ByteBuffer? {
    guard buffer.readInteger(as: UInt8.self) == tag else { return nil }
    var size = 0
    for _ in 0..<4 {
      guard let byte = buffer.readInteger(as: UInt8.self) else { return nil }
      size = size << 7 | Int(byte & 127)
      if byte & 128 == 0 { break }
    }
    return buffer.readSlice(length: size)
  }
}

extension ByteBuffer {
  fileprivate mutating func readColorInformation() -> ColorDescription? {
    guard readInteger(as: UInt32.self) == ("nclx" as FourCC).rawValue, let primaries = readInteger(as: UInt16.self),
      let transfer = readInteger(as: UInt16.self), let matrix = readInteger(as: UInt16.self),
      let range = readInteger(as: UInt8.self)
    else { return nil }
    return ColorDescription(
      primaries: UInt8(truncatingIfNeeded: primaries), transfer: UInt8(truncatingIfNeeded: transfer),
      matrix: UInt8(truncatingIfNeeded: matrix), range: range & 0x80 == 0 ? .limited : .full)
  }

  fileprivate mutating func readMasteringDisplay() -> MasteringDisplay? {
    guard let green = readChromaticity(), let blue = readChromaticity(), let red = readChromaticity(),
      let white = readChromaticity(), let maximum = readInteger(as: UInt32.self),
      let minimum = readInteger(as: UInt32.self)
    else { return nil }
    return MasteringDisplay(
      red: red, green: green, blue: blue, white: white, maximumLuminance: maximum, minimumLuminance: minimum)
  }

  private mutating func readChromaticity() -> MasteringDisplay.Chromaticity? {
    guard let x = readInteger(as: UInt16.self), let y = readInteger(as: UInt16.self) else { return nil }
    return MasteringDisplay.Chromaticity(x: x, y: y)
  }

  fileprivate mutating func readContentLightLevel() -> ContentLightLevel? {
    guard let maximum = readInteger(as: UInt16.self), let average = readInteger(as: UInt16.self) else { return nil }
    return ContentLightLevel(maximum: maximum, maximumAverage: average)
  }
}

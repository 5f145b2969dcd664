internal import NIOCore

/// Sample entries: what a decoder needs to know about a track (ISO/IEC 14496-12 §8.5.2, §12.1.3, §12.2.3).
extension TrackDescription {
  /// An upper bound of what `writeSampleEntry` writes, in bytes.
  var sampleEntryCapacity: Int {
    // The entry's own fields are 86 bytes for picture and 36 for sound; `colr` 19, `pasp` 16, `mdcv` 32,
    // `clli` 12, and the descriptors around an AudioSpecificConfig 49.
    configurationRecord.count + 256
  }

  func writeSampleEntry(_ out: inout OutputRawSpan) {
    let record = configurationRecord
    switch codec {
    case .h264(let configuration): picture("avc1", "avcC", record, configuration.picture, &out)
    case .hevc(let configuration): picture("hvc1", "hvcC", record, configuration.picture, &out)
    case .av1(let configuration): picture("av01", "av1C", record, configuration.picture, &out)
    case .aac(let configuration):
      Self.sound("mp4a", channels: configuration.channels, rate: configuration.samplingFrequency, &out) {
        $0.elementaryStreamDescriptor(audioSpecificConfig: record)
      }
    case .opus(let configuration):
      Self.sound("Opus", channels: configuration.channels, rate: Opus.timescale, &out) {
        $0.box("dOps") { $0.bytes(record) }
      }
    }
  }

  private var configurationRecord: [UInt8] {
    switch codec {
    case .h264(let configuration): configuration.record()
    case .hevc(let configuration): configuration.record()
    case .av1(let configuration): configuration.record()
    case .aac(let configuration): configuration.audioSpecificConfig
    case .opus(let configuration): configuration.record()
    }
  }

  /// Bytes of an entry before the boxes within it: `VisualSampleEntry` and `AudioSampleEntry`.
  static let pictureEntryFields = 78
  static let soundEntryFields = 28

  /// `VisualSampleEntry`, ISO/IEC 14496-12 §12.1.3.
  private func picture(
    _ type: FourCC, _ recordType: FourCC, _ record: [UInt8], _ format: PictureFormat, _ out: inout OutputRawSpan
  ) {
    out.box(type) {
      $0.zeros(6)  // reserved
      $0.u16(1)  // data_reference_index
      $0.zeros(16)  // pre_defined, reserved
      $0.u16(UInt16(truncatingIfNeeded: format.width))
      $0.u16(UInt16(truncatingIfNeeded: format.height))
      $0.u32(0x0048_0000)  // horizresolution: 72 dpi
      $0.u32(0x0048_0000)  // vertresolution
      $0.u32(0)  // reserved
      $0.u16(1)  // frame_count
      $0.zeros(32)  // compressorname
      $0.u16(0x0018)  // depth: colour without alpha
      $0.i16(-1)  // pre_defined
      $0.box(recordType) { $0.bytes(record) }
      if let color { color.write(&$0) }
      if format.sampleAspectRatio != .square { format.sampleAspectRatio.write(&$0) }
      if let display = statedColor?.masteringDisplay { display.write(&$0) }
      if let level = statedColor?.lightLevel { level.write(&$0) }
    }
  }

  /// `AudioSampleEntry`, ISO/IEC 14496-12 §12.2.3.
  private static func sound(
    _ type: FourCC, channels: Int, rate: UInt32, _ out: inout OutputRawSpan,
    _ configuration: (inout OutputRawSpan) -> Void
  ) {
    out.box(type) {
      $0.zeros(6)  // reserved
      $0.u16(1)  // data_reference_index
      $0.zeros(8)  // reserved
      $0.u16(UInt16(truncatingIfNeeded: channels))  // channelcount
      $0.u16(16)  // samplesize
      $0.u32(0)  // pre_defined, reserved
      // 16.16; rates that do not fit are told by the configuration alone.
      $0.u32(rate <= 0xFFFF ? rate << 16 : 0)
      configuration(&$0)
    }
  }
}

extension Codec {
  /// Reads what `writeSampleEntry` wrote (ISO/IEC 14496-12 §12.1.3, §12.2.3): a sample entry's type and payload.
  /// Throws `.unsupported` for another type, `.invalid` when the configuration is not there.
  init(sampleEntry entry: BoxView) throws(CodecError) {
    switch entry.type {
    case "avc1": self = .h264(try H264.Configuration(record: try Self.picture(entry, "avcC")))
    case "hvc1": self = .hevc(try HEVC.Configuration(record: try Self.picture(entry, "hvcC")))
    case "av01": self = .av1(try AV1.Configuration(record: try Self.picture(entry, "av1C")))
    case "mp4a":
      let descriptors = try Self.child(entry, "esds", behind: TrackDescription.soundEntryFields)
      guard let configuration = Self.audioSpecificConfig(descriptors) else {
        throw CodecError(.invalid, "an esds without an AudioSpecificConfig")
      }
      self = .aac(try AAC.Configuration(audioSpecificConfig: configuration))
    case "Opus":
      let record = try Self.child(entry, "dOps", behind: TrackDescription.soundEntryFields)
      self = .opus(try Opus.Configuration(record: record.payload))
    default: throw CodecError(.unsupported, "a sample entry of type \(entry.type)")
    }
  }

  private static func picture(_ entry: BoxView, _ record: FourCC) throws(CodecError) -> ByteBuffer {
    try child(entry, record, behind: TrackDescription.pictureEntryFields).payload
  }

  /// A box within the entry, behind its own fields.
  private static func child(_ entry: BoxView, _ type: FourCC, behind size: Int) throws(CodecError) -> BoxView {
    guard let child = entry.boxes(behind: size).first(where: { $0.type == type }) else {
      throw CodecError(.invalid, "a sample entry \(entry.type) without \(type)")
    }
    return child
  }

  /// The colours of a sample entry that the codec's own configuration does not state; nil when there are none.
  func statedColor(sampleEntry entry: BoxView) -> PictureColor? {
    guard kind == .video else { return nil }
    var color = PictureColor()
    for box in entry.boxes(behind: TrackDescription.pictureEntryFields) {
      switch box.type {
      case "colr":
        if let description = try? ColorDescription(box), description != picture?.color {
          color.description = description
        }
      case "mdcv": color.masteringDisplay = try? MasteringDisplay(box)
      case "clli": color.lightLevel = try? ContentLightLevel(box)
      default: break
      }
    }
    return color == PictureColor() ? nil : color
  }

  /// Follows the descriptors of ISO/IEC 14496-1 §7.2.6 down to the decoder's own.
  private static func audioSpecificConfig(_ box: BoxView) -> ByteBuffer? {
    var rest = box.payload
    guard rest.readInteger(as: UInt32.self) != nil,  // version and flags
      var stream = descriptor(&rest, tag: 0x03), stream.readSlice(length: 3) != nil,
      var decoder = descriptor(&stream, tag: 0x04), decoder.readSlice(length: 13) != nil
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

extension OutputRawSpan {
  /// `esds`: ISO/IEC 14496-14 §5.6 around the descriptors of ISO/IEC 14496-1 §7.2.6.
  fileprivate mutating func elementaryStreamDescriptor(audioSpecificConfig: [UInt8]) {
    fullBox("esds") {
      $0.descriptor(tag: 0x03) {  // ES_Descriptor
        $0.u16(0)  // ES_ID: 0 within a file
        $0.u8(0)
        $0.descriptor(tag: 0x04) {  // DecoderConfigDescriptor
          $0.u8(0x40)  // objectTypeIndication: ISO/IEC 14496-3
          $0.u8(0x15)  // streamType 5 (audio), upStream 0, reserved 1
          $0.u24(0)  // bufferSizeDB
          $0.u32(0)  // maxBitrate
          $0.u32(0)  // avgBitrate: unknown
          $0.descriptor(tag: 0x05) { $0.bytes(audioSpecificConfig) }  // DecoderSpecificInfo
        }
        $0.descriptor(tag: 0x06) { $0.u8(2) }  // SLConfigDescriptor: predefined, reserved for MP4
      }
    }
  }

  /// A descriptor whose size has the four-byte form (ISO/IEC 14496-1 §8.3.3), back-patched.
  private mutating func descriptor(tag: UInt8, _ body: (inout OutputRawSpan) -> Void) {
    u8(tag)
    let start = byteCount
    u32(0)
    body(&self)
    let size = UInt32(truncatingIfNeeded: byteCount - start - 4)
    patch(
      u32: 0x8080_8000 | (size & 0x1F_C000) << 2 | (size & 0x3F80) << 1 | size & 0x7F, at: start)
  }
}

/// `colr` of type `nclx` (ISO/IEC 14496-12 §12.1.5).
extension ColorDescription {
  fileprivate func write(_ out: inout OutputRawSpan) {
    out.box("colr") {
      $0.fourCC("nclx")
      $0.u16(UInt16(primaries))
      $0.u16(UInt16(transfer))
      $0.u16(UInt16(matrix))
      $0.u8(isFullRange ? 0x80 : 0)
    }
  }

  fileprivate init(_ box: BoxView) throws(BoxError) {
    var fields = BoxFields(box)
    guard try fields.fourCC() == "nclx" else { throw box.error(.invalid) }
    self.init(
      primaries: UInt8(truncatingIfNeeded: try fields.u16()), transfer: UInt8(truncatingIfNeeded: try fields.u16()),
      matrix: UInt8(truncatingIfNeeded: try fields.u16()), range: try fields.u8() & 0x80 == 0 ? .limited : .full)
  }
}

/// `pasp` (ISO/IEC 14496-12 §12.1.4).
extension SampleAspectRatio {
  fileprivate func write(_ out: inout OutputRawSpan) {
    out.box("pasp") {
      $0.u32(UInt32(horizontal))
      $0.u32(UInt32(vertical))
    }
  }
}

/// `mdcv` (ISO/IEC 14496-12 §12.1.7): the primaries stand in the order green, blue, red.
extension MasteringDisplay {
  fileprivate func write(_ out: inout OutputRawSpan) {
    out.box("mdcv") {
      for point in [green, blue, red, white] {
        $0.u16(point.x)
        $0.u16(point.y)
      }
      $0.u32(maximumLuminance)
      $0.u32(minimumLuminance)
    }
  }

  fileprivate init(_ box: BoxView) throws(BoxError) {
    var fields = BoxFields(box)
    let green = try Chromaticity(&fields)
    let blue = try Chromaticity(&fields)
    let red = try Chromaticity(&fields)
    self.init(
      red: red, green: green, blue: blue, white: try Chromaticity(&fields), maximumLuminance: try fields.u32(),
      minimumLuminance: try fields.u32())
  }
}

extension MasteringDisplay.Chromaticity {
  fileprivate init(_ fields: inout BoxFields) throws(BoxError) {
    self.init(x: try fields.u16(), y: try fields.u16())
  }
}

/// `clli` (ISO/IEC 14496-12 §12.1.6).
extension ContentLightLevel {
  fileprivate func write(_ out: inout OutputRawSpan) {
    out.box("clli") {
      $0.u16(maximum)
      $0.u16(maximumAverage)
    }
  }

  fileprivate init(_ box: BoxView) throws(BoxError) {
    var fields = BoxFields(box)
    self.init(maximum: try fields.u16(), maximumAverage: try fields.u16())
  }
}

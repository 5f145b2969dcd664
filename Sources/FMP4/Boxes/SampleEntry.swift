internal import NIOCore

/// A sample entry: what a decoder needs to know about a track (ISO/IEC 14496-12 §8.5.2, §12.1.3, §12.2.3).
extension TrackDescription {
  /// Upper bound for the output of `writeSampleEntry`, in bytes.
  var sampleEntryCapacity: Int {
    // The entry's own fields take 86 bytes for video and 36 for audio. `colr` takes 19, `pasp` 16, `mdcv` 32, `clli`
    // 12.
    codec.configuration.boxed().count + 256
  }

  func writeSampleEntry(_ out: inout OutputRawSpan) {
    guard let (type, record) = codec.id.type.sampleEntry else { return }
    out.box(type) {
      $0.zeros(6)  // reserved
      $0.u16(1)  // data_reference_index
      if let format = codec.videoFormat { Self.visual(format, &$0) }
      if let audio = codec.audio { Self.audio(audio, &$0) }
      $0.box(record) { $0.bytes(codec.configuration.boxed()) }
      if let color { color.write(&$0) }
      if let ratio = codec.videoFormat?.sampleAspectRatio, ratio != .square { ratio.write(&$0) }
      if let display = statedColor?.masteringDisplay { display.write(&$0) }
      if let level = statedColor?.lightLevel { level.write(&$0) }
    }
  }

  /// The fields of a `VisualSampleEntry`, ISO/IEC 14496-12 §12.1.3.
  private static func visual(_ format: VideoFormat, _ out: inout OutputRawSpan) {
    out.zeros(16)  // pre_defined, reserved
    out.u16(UInt16(truncatingIfNeeded: format.width))
    out.u16(UInt16(truncatingIfNeeded: format.height))
    out.u32(0x0048_0000)  // horizresolution: 72 dpi
    out.u32(0x0048_0000)  // vertresolution
    out.u32(0)  // reserved
    out.u16(1)  // frame_count
    out.zeros(32)  // compressorname
    out.u16(0x0018)  // depth: colour without alpha
    out.i16(-1)  // pre_defined
  }

  /// The fields of an `AudioSampleEntry`, ISO/IEC 14496-12 §12.2.3.
  private static func audio(_ format: (sampleRate: UInt32, channels: Int), _ out: inout OutputRawSpan) {
    out.zeros(8)  // reserved
    out.u16(UInt16(truncatingIfNeeded: format.channels))  // channelcount
    out.u16(16)  // samplesize
    out.u32(0)  // pre_defined, reserved
    // samplerate, 16.16. A rate that does not fit is only in the codec configuration.
    out.u32(format.sampleRate <= 0xFFFF ? format.sampleRate << 16 : 0)
  }
}

extension Codec {
  /// Reads the type and payload of a sample entry. Throws `.unsupported` for an unknown type, and `.invalid` if the
  /// configuration is missing.
  init(sampleEntry entry: BoxView) throws(CodecError) {
    guard let type = CodecID.allCases.lazy.map(\.type).first(where: { $0.sampleEntry?.type == entry.type }),
      let record = type.sampleEntry?.configuration
    else {
      throw CodecError(.unsupported, "a sample entry of type \(entry.type)")
    }
    guard let box = entry.boxes(behind: Self.entryFields(type.kind)).first(where: { $0.type == record }) else {
      throw CodecError(.invalid, "a sample entry \(entry.type) without \(record)")
    }
    self.init(
      try type.kind == .video ? type.init(boxed: box.payload, size: Self.size(entry)) : type.init(boxed: box.payload))
  }

  /// Bytes of a `VisualSampleEntry` or an `AudioSampleEntry` before its child boxes.
  private static func entryFields(_ kind: MediaKind) -> Int { kind == .video ? 78 : 28 }

  /// Width and height of a `VisualSampleEntry`; 0 if it is too short.
  private static func size(_ entry: BoxView) -> (width: UInt16, height: UInt16) {
    let (payload, at) = (entry.payload, entry.payload.readerIndex)
    return (payload.getInteger(at: at + 24) ?? 0, payload.getInteger(at: at + 26) ?? 0)
  }

  /// Colours of a sample entry that the codec configuration does not state. Nil if there are none.
  func statedColor(sampleEntry entry: BoxView) -> VideoColor? {
    guard kind == .video else { return nil }
    var color = VideoColor()
    for box in entry.boxes(behind: Self.entryFields(kind)) {
      switch box.type {
      case "colr":
        if let description = try? ColorDescription(box), description != videoFormat?.color {
          color.description = description
        }
      case "mdcv": color.masteringDisplay = try? MasteringDisplay(box)
      case "clli": color.lightLevel = try? ContentLightLevel(box)
      default: break
      }
    }
    return color == VideoColor() ? nil : color
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

/// `mdcv` (ISO/IEC 14496-12 §12.1.7). The order of the primaries is green, blue, red.
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

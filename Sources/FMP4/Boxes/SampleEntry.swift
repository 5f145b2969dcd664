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

  /// `VisualSampleEntry`, ISO/IEC 14496-12 §12.1.3.
  private func picture(
    _ type: FourCC, _ recordType: FourCC, _ record: [UInt8], _ format: PictureFormat, _ out: inout OutputRawSpan
  ) {
    out.box(type) {
      $0.zeros(6)
      $0.u16(1)  // data_reference_index
      $0.zeros(16)
      $0.u16(UInt16(truncatingIfNeeded: format.width))
      $0.u16(UInt16(truncatingIfNeeded: format.height))
      $0.u32(0x0048_0000)  // 72 dpi
      $0.u32(0x0048_0000)
      $0.u32(0)
      $0.u16(1)  // frame_count
      $0.zeros(32)  // compressorname
      $0.u16(0x0018)
      $0.i16(-1)
      $0.box(recordType) { $0.bytes(record) }
      if let color { $0.colorInformation(color) }
      if format.sampleAspectRatio != .square { $0.pixelAspectRatio(format.sampleAspectRatio) }
      if let display = statedColor?.masteringDisplay { $0.masteringDisplay(display) }
      if let level = statedColor?.lightLevel { $0.contentLightLevel(level) }
    }
  }

  /// `AudioSampleEntry`, ISO/IEC 14496-12 §12.2.3.
  private static func sound(
    _ type: FourCC, channels: Int, rate: UInt32, _ out: inout OutputRawSpan,
    _ configuration: (inout OutputRawSpan) -> Void
  ) {
    out.box(type) {
      $0.zeros(6)
      $0.u16(1)  // data_reference_index
      $0.zeros(8)
      $0.u16(UInt16(truncatingIfNeeded: channels))
      $0.u16(16)  // samplesize
      $0.u32(0)
      // 16.16; rates that do not fit are told by the configuration alone.
      $0.u32(rate <= 0xFFFF ? rate << 16 : 0)
      configuration(&$0)
    }
  }
}

extension OutputRawSpan {
  /// ISO/IEC 14496-12 §12.1.5.
  fileprivate mutating func colorInformation(_ color: ColorDescription) {
    box("colr") {
      $0.fourCC("nclx")
      $0.u16(UInt16(color.primaries))
      $0.u16(UInt16(color.transfer))
      $0.u16(UInt16(color.matrix))
      $0.u8(color.isFullRange ? 0x80 : 0)
    }
  }

  /// ISO/IEC 14496-12 §12.1.4.
  fileprivate mutating func pixelAspectRatio(_ ratio: SampleAspectRatio) {
    box("pasp") {
      $0.u32(UInt32(ratio.horizontal))
      $0.u32(UInt32(ratio.vertical))
    }
  }

  /// ISO/IEC 14496-12 §12.1.7; the primaries stand in the order green, blue, red.
  fileprivate mutating func masteringDisplay(_ display: MasteringDisplay) {
    box("mdcv") {
      for point in [display.green, display.blue, display.red, display.white] {
        $0.u16(point.x)
        $0.u16(point.y)
      }
      $0.u32(display.maximumLuminance)
      $0.u32(display.minimumLuminance)
    }
  }

  /// ISO/IEC 14496-12 §12.1.6.
  fileprivate mutating func contentLightLevel(_ level: ContentLightLevel) {
    box("clli") {
      $0.u16(level.maximum)
      $0.u16(level.maximumAverage)
    }
  }

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

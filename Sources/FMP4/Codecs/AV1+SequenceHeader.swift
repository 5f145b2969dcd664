extension AV1 {
  /// `sequence_header_obu`, AV1 §5.5.
  struct SequenceHeader: Sendable {
    enum Tier: Sendable {
      case main
      case high
    }

    let profile: UInt8
    /// `seq_level_idx` and tier of operating point 0.
    let level: UInt8
    let tier: Tier
    let color: ColorConfiguration
    let format: VideoFormat

    /// `payload` is the OBU without its header.
    init(payload: [UInt8]) throws(CodecError) {
      var reader = BitReader(payload)
      profile = UInt8(truncatingIfNeeded: try reader.bits(3))
      guard profile <= 2 else { throw CodecError(.unsupported, "AV1 seq_profile \(profile); 0 to 2 are known") }
      try reader.skip(1)  // still_picture
      let reduced = try reader.flag()
      var timing = Timing()
      if reduced {
        level = UInt8(truncatingIfNeeded: try reader.bits(5))
        tier = .main
      } else {
        timing = try Timing(&reader)
        (level, tier) = try Self.operatingPoints(&reader, timing: timing)
      }

      let widthBits = Int(try reader.bits(4)) + 1
      let heightBits = Int(try reader.bits(4)) + 1
      let width = Int64(try reader.bits(widthBits)) + 1
      let height = Int64(try reader.bits(heightBits)) + 1
      if !reduced, try reader.flag() { try reader.skip(7) }  // frame id lengths
      try reader.skip(3)  // superblock size, filter intra, intra edge filter
      if !reduced {
        try reader.skip(4)  // interintra, masked compound, warped motion, dual filter
        let orderHint = try reader.flag()
        if orderHint { try reader.skip(2) }
        // SELECT_SCREEN_CONTENT_TOOLS and SELECT_INTEGER_MV of §5.5.1.
        let screenContent = try reader.flag() ? true : try reader.flag()
        if screenContent, try !reader.flag() { try reader.skip(1) }
        if orderHint { try reader.skip(3) }
      }
      try reader.skip(3)  // superres, CDEF, restoration
      color = try ColorConfiguration(&reader, profile: profile)
      format = try VideoFormat(
        width: width, height: height, color: color.description, chroma: color.chroma,
        lumaBitDepth: color.bitDepth, chromaBitDepth: color.bitDepth, frameRate: timing.rate,
        cadence: timing.rate == nil ? .variable : .fixed)
    }

    /// `timing_info` and `decoder_model_info`, §5.5.3 and §5.5.4.
    private struct Timing {
      var rate: FrameRate?
      /// Nil without a decoder model.
      var bufferDelayBits: Int?

      init() {}

      init(_ reader: inout BitReader) throws(CodecError) {
        guard try reader.flag() else { return }
        let tick = try reader.bits(32)
        let scale = try reader.bits(32)
        if try reader.flag() {
          let ticks = UInt64(try reader.ue("num_ticks_per_picture_minus_1")) + 1
          let (product, overflow) = UInt64(tick).multipliedReportingOverflow(by: ticks)
          if !overflow, let denominator = UInt32(exactly: product) {
            rate = FrameRate(numerator: scale, denominator: denominator)
          }
        }
        if try reader.flag() {
          bufferDelayBits = Int(try reader.bits(5)) + 1
          try reader.skip(42)
        }
      }
    }

    private static func operatingPoints(
      _ reader: inout BitReader, timing: Timing
    ) throws(CodecError) -> (UInt8, Tier) {
      let displayDelays = try reader.flag()
      let count = try reader.bits(5)
      var first: (UInt8, Tier) = (0, .main)
      for point in 0...count {
        try reader.skip(12)  // operating_point_idc
        let level = UInt8(truncatingIfNeeded: try reader.bits(5))
        let tier: Tier = level > 7 ? (try reader.flag() ? .high : .main) : .main
        if point == 0 { first = (level, tier) }
        if let bits = timing.bufferDelayBits, try reader.flag() { try reader.skip(2 * bits + 1) }
        if displayDelays, try reader.flag() { try reader.skip(4) }
      }
      return first
    }
  }

  /// `color_config`, AV1 §5.5.2.
  struct ColorConfiguration: Sendable {
    let bitDepth: UInt8
    let chroma: VideoFormat.Chroma
    let subsampling: (x: Bool, y: Bool)
    /// `chroma_sample_position`; 0 is unknown.
    let samplePosition: UInt8
    let range: ColorDescription.Range
    /// Nil if the stream states no colours and has limited range.
    let description: ColorDescription?

    init(_ reader: inout BitReader, profile: UInt8) throws(CodecError) {
      let high = try reader.flag()
      if profile == 2, high {
        bitDepth = try reader.flag() ? 12 : 10
      } else {
        bitDepth = high ? 10 : 8
      }
      let monochrome = profile == 1 ? false : try reader.flag()
      var points: (primaries: UInt8, transfer: UInt8, matrix: UInt8) = (2, 2, 2)
      let described = try reader.flag()
      if described {
        points.primaries = UInt8(truncatingIfNeeded: try reader.bits(8))
        points.transfer = UInt8(truncatingIfNeeded: try reader.bits(8))
        points.matrix = UInt8(truncatingIfNeeded: try reader.bits(8))
      }
      var position: UInt8 = 0
      if monochrome {
        range = try reader.flag() ? .full : .limited
        subsampling = (true, true)
      } else if points == (1, 13, 0) {
        // sRGB: full range and no chroma subsampling, without a bit that states it.
        range = .full
        subsampling = (false, false)
      } else {
        range = try reader.flag() ? .full : .limited
        switch profile {
        case 0: subsampling = (true, true)
        case 1: subsampling = (false, false)
        default:
          if bitDepth == 12 {
            let x = try reader.flag()
            subsampling = (x, x ? try reader.flag() : false)
          } else {
            subsampling = (true, false)
          }
        }
        if subsampling.x, subsampling.y { position = UInt8(truncatingIfNeeded: try reader.bits(2)) }
      }
      samplePosition = position
      chroma =
        switch (monochrome, subsampling.x, subsampling.y) {
        case (true, _, _): .monochrome
        case (_, true, true): .yuv420
        case (_, true, false): .yuv422
        default: .yuv444
        }
      description =
        described || range == .full
        ? ColorDescription(
          primaries: points.primaries, transfer: points.transfer, matrix: points.matrix, range: range) : nil
    }
  }
}

internal import NIOCore

extension VP9 {
  /// `chromaSubsampling` of `vpcC`.
  enum Chroma: UInt8, Sendable, Hashable {
    /// 4:2:0 with chroma beside the luma samples, vertically between them; and at them.
    case between = 0
    case colocated = 1
    case yuv422 = 2
    case yuv444 = 3
  }

  /// `color_space` of VP9 §7.2.2, and its code points of ITU-T H.273.
  enum ColorSpace: UInt8, Sendable, Hashable {
    case unknown = 0
    case bt601, bt709, smpte170, smpte240, bt2020
    case rgb = 7

    var points: (primaries: UInt8, transfer: UInt8, matrix: UInt8) {
      switch self {
      case .unknown: (2, 2, 2)
      case .bt601: (5, 6, 5)
      case .bt709: (1, 1, 1)
      case .smpte170: (6, 6, 6)
      case .smpte240: (7, 7, 7)
      // Its transfer is not stated: it may be PQ.
      case .bt2020: (9, 2, 9)
      case .rgb: (1, 13, 0)
      }
    }

    init(points: (primaries: UInt8, transfer: UInt8, matrix: UInt8)) {
      self = [.bt601, .bt709, .smpte170, .smpte240, .bt2020, .rgb].first { $0.points == points } ?? .unknown
    }
  }

  /// What the uncompressed header of a key frame states (VP9 §6.2, §7.2).
  struct KeyFrameHeader: Sendable, Hashable {
    /// Bytes that are read at most: of a frame, as far as its size.
    static let bytes = 12

    let profile: UInt8
    let bitDepth: UInt8
    let color: ColorSpace
    let range: ColorDescription.Range
    let chroma: Chroma
    let width: Int64
    let height: Int64

    /// Nil for a frame of another kind.
    init?(frame: ByteBuffer) throws(CodecError) {
      let head = frame.getBytes(at: frame.readerIndex, length: min(frame.readableBytes, Self.bytes)) ?? []
      var reader = BitReader(head)
      guard try reader.bits(2) == 2 else { throw CodecError(.invalid, "a frame of VP9 without its marker", offset: 0) }
      let low = try reader.bits(1)
      profile = UInt8(low | (try reader.bits(1)) << 1)
      if profile == 3, try reader.flag() { throw CodecError(.unsupported, "VP9 of a profile above 3") }
      // show_existing_frame, frame_type
      if try reader.flag() { return nil }
      if try reader.flag() { return nil }
      try reader.skip(2)  // show_frame, error_resilient_mode
      guard try reader.bits(24) == 0x49_8342 else {
        throw CodecError(.invalid, "a key frame of VP9 without its sync code", offset: 1)
      }
      bitDepth = profile < 2 ? 8 : try reader.flag() ? 12 : 10
      color = ColorSpace(rawValue: UInt8(try reader.bits(3))) ?? .unknown
      let isOdd = profile & 1 == 1
      if color == .rgb {
        guard isOdd else { throw CodecError(.invalid, "VP9 of RGB in profile \(profile)") }
        try reader.skip(1)
        (range, chroma) = (.full, .yuv444)
      } else {
        range = try reader.flag() ? .full : .limited
        if isOdd {
          let (x, y) = (try reader.flag(), try reader.flag())
          try reader.skip(1)
          // Chroma at half the height alone has no code point in the box.
          switch (x, y) {
          case (false, false): chroma = .yuv444
          case (true, false): chroma = .yuv422
          default: throw CodecError(.unsupported, "VP9 of profile \(profile) with other chroma than 4:2:2 and 4:4:4")
          }
        } else {
          chroma = .colocated
        }
      }
      width = Int64(try reader.bits(16)) + 1
      height = Int64(try reader.bits(16)) + 1
    }

    /// Reads the payload of `vpcC`, which lacks the size.
    init(box: ByteBuffer, width: Int64, height: Int64) throws(CodecError) {
      var reader = try ByteReader(box, name: "vpcC")
      let version = try reader.u8()
      guard version == 1 else {
        throw CodecError(.unsupported, "vpcC of version \(version); only 1 is known", offset: 0)
      }
      _ = try reader.bytes(3)  // flags
      profile = try reader.u8()
      guard profile <= 3 else { throw CodecError(.unsupported, "VP9 of profile \(profile); 0 to 3 are known") }
      _ = try reader.u8()  // level: made of the size
      let depths = try reader.u8()
      bitDepth = depths >> 4
      guard [8, 10, 12].contains(bitDepth), let chroma = Chroma(rawValue: depths >> 1 & 7) else {
        throw CodecError(.invalid, "vpcC with \(depths >> 4) bits and chroma \(depths >> 1 & 7)")
      }
      self.chroma = chroma
      range = depths & 1 == 1 ? .full : .limited
      color = ColorSpace(points: (try reader.u8(), try reader.u8(), try reader.u8()))
      (self.width, self.height) = (width, height)
    }

    var format: VideoFormat {
      get throws(CodecError) {
        let points = color.points
        let description = ColorDescription(
          primaries: points.primaries, transfer: points.transfer, matrix: points.matrix, range: range)
        let subsampling: VideoFormat.Chroma =
          switch chroma {
          case .between, .colocated: .yuv420
          case .yuv422: .yuv422
          case .yuv444: .yuv444
          }
        return try VideoFormat(
          width: width, height: height, color: color == .unknown && range == .limited ? nil : description,
          chroma: subsampling, lumaBitDepth: bitDepth, chromaBitDepth: bitDepth)
      }
    }

    /// The lowest level, ten times its number, whose limits of picture size and side the video keeps, and those of the
    /// sample rate at 60 frames a second. No frame states its rate.
    var level: UInt8 {
      let size = width * height
      let found = Self.levels.first {
        size <= $0.size && size * 60 <= $0.rate && max(width, height) <= $0.side
      }
      return found?.level ?? 62
    }

    /// "VP9 Levels": luma samples a second, luma samples of a picture, longest side.
    private static let levels: [(level: UInt8, rate: Int64, size: Int64, side: Int64)] = [
      (10, 829_440, 36_864, 512), (11, 2_764_800, 73_728, 768), (20, 4_608_000, 122_880, 960),
      (21, 9_216_000, 245_760, 1344), (30, 20_736_000, 552_960, 2048), (31, 36_864_000, 983_040, 2752),
      (40, 83_558_400, 2_228_224, 4160), (41, 160_432_128, 2_228_224, 4160), (50, 311_951_360, 8_912_896, 8384),
      (51, 588_251_136, 8_912_896, 8384), (52, 1_176_502_272, 8_912_896, 8384),
      (60, 1_176_502_272, 35_651_584, 16_832), (61, 2_353_004_544, 35_651_584, 16_832),
      (62, 4_706_009_088, 35_651_584, 16_832),
    ]
  }
}

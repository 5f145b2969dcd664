/// Frames per second, as a fraction in lowest terms (30000/1001 …).
package struct FrameRate: Sendable, Hashable, CustomStringConvertible {
  package let numerator: UInt32
  package let denominator: UInt32

  /// Nil if one of the numbers is 0.
  package init?(numerator: UInt32, denominator: UInt32) {
    guard numerator > 0, denominator > 0 else { return nil }
    let (n, d) = lowestTerms(numerator, denominator)
    self.numerator = n
    self.denominator = d
  }

  /// For display only. Never converted back to media time.
  package var framesPerSecond: Double { Double(numerator) / Double(denominator) }

  package var description: String { denominator == 1 ? "\(numerator)" : "\(numerator)/\(denominator)" }
}

/// Width to height of one sample of a frame (ITU-T H.264 §E.2.1). 1:1 is square.
package struct SampleAspectRatio: Sendable, Hashable {
  package let horizontal: UInt16
  package let vertical: UInt16

  package static let square = SampleAspectRatio(horizontal: 1, vertical: 1)

  private init(horizontal: UInt16, vertical: UInt16) {
    self.horizontal = horizontal
    self.vertical = vertical
  }

  /// Reduced to lowest terms. Square if one of the numbers is 0, which means "unspecified".
  package init(_ horizontal: UInt16, _ vertical: UInt16) {
    guard horizontal > 0, vertical > 0 else {
      self = .square
      return
    }
    let (h, v) = lowestTerms(UInt32(horizontal), UInt32(vertical))
    self.init(horizontal: UInt16(truncatingIfNeeded: h), vertical: UInt16(truncatingIfNeeded: v))
  }

  /// Table E-1 of ITU-T H.264 (and of H.265). Square if the index is reserved or unspecified.
  init(tableIndex: UInt32) {
    let table: [(UInt16, UInt16)] = [
      (1, 1), (1, 1), (12, 11), (10, 11), (16, 11), (40, 33), (24, 11), (20, 11), (32, 11), (80, 33), (18, 11),
      (15, 11), (64, 33), (160, 99), (4, 3), (3, 2), (2, 1),
    ]
    let index = Int(tableIndex)
    let (h, v) = index < table.count ? table[index] : (1, 1)
    self.init(h, v)
  }
}

/// Meaning of the colour values: the code points of ITU-T H.273, as in the `nclx` form of `colr`.
package struct ColorDescription: Sendable, Hashable {
  package enum Range: Sendable, Hashable {
    case limited
    case full
  }

  /// 1 BT.709, 9 BT.2020, 2 unspecified …
  package let primaries: UInt8
  /// 1 BT.709, 16 PQ, 18 HLG, 2 unspecified …
  package let transfer: UInt8
  /// 1 BT.709, 9 BT.2020 non-constant, 2 unspecified …
  package let matrix: UInt8
  package let range: Range

  package init(primaries: UInt8, transfer: UInt8, matrix: UInt8, range: Range) {
    self.primaries = primaries
    self.transfer = transfer
    self.matrix = matrix
    self.range = range
  }

  package var isFullRange: Bool { range == .full }
}

/// Format of the video from a parameter set, in the same form for all codecs.
package struct VideoFormat: Sendable, Hashable {
  /// `chroma_format_idc` of H.264 §6.2 and H.265 §6.2.
  package enum Chroma: UInt8, Sendable, Hashable {
    case monochrome = 0
    case yuv420 = 1
    case yuv422 = 2
    case yuv444 = 3
  }

  /// Whether the stated frame rate holds for every frame.
  package enum Cadence: Sendable, Hashable {
    case fixed
    case variable
  }

  /// The largest side of a frame that weir accepts, in samples.
  package static let maximumSide = 16_384

  /// Luma samples after cropping.
  package var width: Int
  package var height: Int
  package var sampleAspectRatio: SampleAspectRatio
  /// Nil if the stream does not state it.
  package var color: ColorDescription?
  package var chroma: Chroma
  /// Bits per sample.
  package var lumaBitDepth: UInt8
  package var chromaBitDepth: UInt8
  /// Frame rate stated by the stream; nil if it states none. An encoder with a variable rate may state its clock here;
  /// see `cadence`.
  package var frameRate: FrameRate?
  package var cadence: Cadence
  /// Most frames that precede another in decoding order and follow it in output order. Nil if not stated.
  package var reorderDepth: Int?

  /// Throws if a side is not in 1…`maximumSide`.
  init(
    width: Int64, height: Int64, sampleAspectRatio: SampleAspectRatio = .square, color: ColorDescription? = nil,
    chroma: Chroma, lumaBitDepth: UInt8, chromaBitDepth: UInt8, frameRate: FrameRate? = nil,
    cadence: Cadence = .variable, reorderDepth: Int? = nil
  ) throws(CodecError) {
    let sides = 1...Int64(Self.maximumSide)
    guard sides.contains(width), sides.contains(height) else {
      throw CodecError(
        .invalid, "video of \(width)×\(height) samples; each side must be 1 to \(Self.maximumSide)")
    }
    self.width = Int(width)
    self.height = Int(height)
    self.sampleAspectRatio = sampleAspectRatio
    self.color = color
    self.chroma = chroma
    self.lumaBitDepth = lumaBitDepth
    self.chromaBitDepth = chromaBitDepth
    self.frameRate = frameRate
    self.cadence = cadence
    self.reorderDepth = reorderDepth
  }

  /// Display size in square samples. The sample aspect ratio scales the width; the height stays (ISO/IEC 14496-12
  /// §12.1.4). At most 65535, the limit of 16.16.
  package var displaySize: (width: Int, height: Int) {
    let h = Int(sampleAspectRatio.horizontal)
    let v = Int(sampleAspectRatio.vertical)
    return (min(max((width * h + v / 2) / v, 1), 65_535), height)
  }
}

private func lowestTerms(_ a: UInt32, _ b: UInt32) -> (UInt32, UInt32) {
  var (x, y) = (a, b)
  while y != 0 { (x, y) = (y, x % y) }
  return x == 0 ? (a, b) : (a / x, b / x)
}

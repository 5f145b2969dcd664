internal import NIOCore

/// The formats of pictures that are read, known by their first bytes; and the size that a picture states before its
/// pixels.
enum PictureFormat: String, Sendable, Hashable, CaseIterable {
  case png = "PNG"
  case jpeg = "JPEG"
  case webp = "WebP"
  case bmp = "BMP"

  /// Bytes that show the format.
  static let beginning = 18

  /// Nil if the bytes do not begin as a picture does.
  init?(_ bytes: ByteBuffer) {
    func has(_ signature: [UInt8], at index: Int) -> Bool {
      bytes.getBytes(at: index, length: signature.count) == signature
    }
    if has([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A], at: 0) {
      self = .png
    } else if has([0xFF, 0xD8, 0xFF], at: 0) {
      self = .jpeg
    } else if has(Array("RIFF".utf8), at: 0), has(Array("WEBP".utf8), at: 8) {
      self = .webp
    } else if has(Array("BM".utf8), at: 0),
      let header: UInt32 = bytes.getInteger(at: 14, endianness: .little),
      [12, 40, 52, 56, 64, 108, 124].contains(header)
    {
      // Its two letters alone could begin a text.
      self = .bmp
    } else {
      return nil
    }
  }

  /// The size that the picture states. Nil if the bytes end before it, or are none of this format.
  func size(_ bytes: ByteBuffer) -> PictureSize? {
    switch self {
    case .png: png(bytes)
    case .jpeg: jpeg(bytes)
    case .webp: webp(bytes)
    case .bmp: bmp(bytes)
    }
  }

  /// The chunk IHDR, which comes first (ISO/IEC 15948 §11.2.2).
  private func png(_ bytes: ByteBuffer) -> PictureSize? {
    guard bytes.getString(at: 12, length: 4) == "IHDR", let width: UInt32 = bytes.getInteger(at: 16),
      let height: UInt32 = bytes.getInteger(at: 20)
    else { return nil }
    return PictureSize(width: Int(width), height: Int(height))
  }

  /// The frame header, which follows segments of other kinds (ITU-T T.81 §B.2.2).
  private func jpeg(_ bytes: ByteBuffer) -> PictureSize? {
    var index = 2
    while let marker: UInt16 = bytes.getInteger(at: index) {
      switch marker {
      case 0xFFFF:
        // A fill byte.
        index += 1
      case 0xFFC0...0xFFC3, 0xFFC5...0xFFC7, 0xFFC9...0xFFCB, 0xFFCD...0xFFCF:
        guard let height: UInt16 = bytes.getInteger(at: index + 5), let width: UInt16 = bytes.getInteger(at: index + 7)
        else { return nil }
        return PictureSize(width: Int(width), height: Int(height))
      case 0xFFC4, 0xFFC8, 0xFFCC, 0xFFDB...0xFFFE:
        guard let length: UInt16 = bytes.getInteger(at: index + 2), length >= 2 else { return nil }
        index += 2 + Int(length)
      default: return nil
      }
    }
    return nil
  }

  /// The frame header of VP8, the header of the lossless format, or the canvas (RFC 9649 §2.5 to §2.7).
  private func webp(_ bytes: ByteBuffer) -> PictureSize? {
    switch bytes.getString(at: 12, length: 4) {
    case "VP8 ":
      guard let width: UInt16 = bytes.getInteger(at: 26, endianness: .little),
        let height: UInt16 = bytes.getInteger(at: 28, endianness: .little)
      else { return nil }
      return PictureSize(width: Int(width & 0x3FFF), height: Int(height & 0x3FFF))
    case "VP8L":
      guard let sides: UInt32 = bytes.getInteger(at: 21, endianness: .little) else { return nil }
      return PictureSize(width: Int(sides & 0x3FFF) + 1, height: Int(sides >> 14 & 0x3FFF) + 1)
    case "VP8X":
      guard let sides: UInt64 = bytes.getInteger(at: 24, endianness: .little) else { return nil }
      return PictureSize(width: Int(sides & 0xFF_FFFF) + 1, height: Int(sides >> 24 & 0xFF_FFFF) + 1)
    default: return nil
    }
  }

  /// The header of OS/2, or one of Windows. There a negative height says that the rows begin at the top.
  private func bmp(_ bytes: ByteBuffer) -> PictureSize? {
    guard let header: UInt32 = bytes.getInteger(at: 14, endianness: .little) else { return nil }
    if header == 12 {
      guard let width: UInt16 = bytes.getInteger(at: 18, endianness: .little),
        let height: UInt16 = bytes.getInteger(at: 20, endianness: .little)
      else { return nil }
      return PictureSize(width: Int(width), height: Int(height))
    }
    guard let width: Int32 = bytes.getInteger(at: 18, endianness: .little),
      let height: Int32 = bytes.getInteger(at: 22, endianness: .little)
    else { return nil }
    return PictureSize(width: Int(width.magnitude), height: Int(height.magnitude))
  }
}

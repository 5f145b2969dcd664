/// Pictures as files, made by hand.
enum PictureBytes {
  /// A grey PNG. Its pixels are stored and not compressed. `grey` gives the pixel of a column and row.
  static func png(width: Int, height: Int, grey: (Int, Int) -> UInt8) -> [UInt8] {
    var rows: [UInt8] = []
    for row in 0..<height { rows += [0] + (0..<width).map { grey($0, row) } }
    return png(width: UInt32(width), height: UInt32(height), data: stored(rows))
  }

  /// A grey PNG with that header and those compressed bytes, whatever they are.
  static func png(width: UInt32, height: UInt32, data: [UInt8]) -> [UInt8] {
    let header = bytes(width) + bytes(height) + [8, 0, 0, 0, 0]
    return [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A] + chunk("IHDR", header) + chunk("IDAT", data)
      + chunk("IEND", [])
  }

  /// A bitmap of Windows with 24 bits a pixel, all of that blue, green and red.
  static func bmp(width: Int, height: Int, _ pixel: [UInt8]) -> [UInt8] {
    let row = Array(repeatElement(pixel, count: width).joined())
    let padded = row + [UInt8](repeating: 0, count: (4 - row.count % 4) % 4)
    let pixels = Array(repeatElement(padded, count: height).joined())
    func little(_ value: Int) -> [UInt8] { bytes(UInt32(value)).reversed() }
    return Array("BM".utf8) + little(54 + pixels.count) + little(0) + little(54) + little(40) + little(width)
      + little(height) + [1, 0, 24, 0] + [UInt8](repeating: 0, count: 24) + pixels
  }

  /// Tiles of many shades.
  static func tiles(_ column: Int, _ row: Int) -> UInt8 {
    UInt8(truncatingIfNeeded: column / 9 * 37 + row / 7 * 53)
  }

  /// A stream of zlib with blocks that are not compressed (RFC 1950, RFC 1951 §3.2.4).
  private static func stored(_ bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x78, 0x01]
    let longest = 65_535
    for start in stride(from: 0, to: bytes.count, by: longest) {
      let block = bytes[start..<min(start + longest, bytes.count)]
      let length = UInt16(block.count)
      result.append(start + block.count == bytes.count ? 1 : 0)
      for number in [length, ~length] { result += [UInt8(number & 0xFF), UInt8(number >> 8)] }
      result += block
    }
    var (low, high): (UInt32, UInt32) = (1, 0)
    for byte in bytes {
      low = (low + UInt32(byte)) % 65_521
      high = (high + low) % 65_521
    }
    return result + self.bytes(high << 16 | low)
  }

  private static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
    let checked = Array(type.utf8) + content
    var sum = UInt32.max
    for byte in checked {
      sum ^= UInt32(byte)
      for _ in 0..<8 { sum = sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
    }
    return bytes(UInt32(content.count)) + checked + bytes(~sum)
  }

  private static func bytes(_ number: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: number >> $0) }
  }
}

package import NIOCore

extension AAC.Configuration {
  /// The elements of a frame (ISO/IEC 14496-3 table 4.85).
  private enum Element: UInt32 {
    case single = 0
    case pair = 1
    case lowFrequency = 3
    case end = 7
  }

  /// Elements by the arrangement of the channels (table 1.19).
  private static let elements: [UInt32: [Element]] = [
    1: [.single], 2: [.pair], 3: [.single, .pair], 4: [.single, .pair, .single], 5: [.single, .pair, .pair],
    6: [.single, .pair, .pair, .lowFrequency],
  ]

  /// A frame whose channels have no spectrum (`raw_data_block`, §4.4.2.1), bit by bit as libavcodec writes one. Nil for more
  /// channels, and for those that a program config element lists.
  package var silence: ByteBuffer? {
    guard let elements = Self.elements[arrangement] else { return nil }
    var bytes: [UInt8] = []
    var position = 0
    func write(_ value: UInt32, _ width: Int) {
      for shift in (0..<width).reversed() {
        if position % 8 == 0 { bytes.append(0) }
        bytes[bytes.count - 1] |= UInt8(value >> UInt32(shift) & 1) << UInt8(7 - position % 8)
        position += 1
      }
    }
    // One long window of Kaiser-Bessel shape, no scale factor band and no prediction (`ics_info`).
    let window = (value: UInt32(1) << 7, width: 11)
    var counts: [Element: UInt32] = [:]
    for element in elements {
      write(element.rawValue, 3)
      write(counts[element, default: 0], 4)
      counts[element, default: 0] += 1
      if element == .pair {
        // A common window, and no middle and side stereo.
        write(1, 1)
        write(window.value, window.width)
        write(0, 2)
      }
      for _ in 0..<(element == .pair ? 2 : 1) {
        write(140, 8)  // global_gain
        if element != .pair { write(window.value, window.width) }
        write(0, 3)  // no pulses, noise shaping or gain control
      }
    }
    write(Element.end.rawValue, 3)
    return ByteBuffer(bytes: bytes)
  }
}

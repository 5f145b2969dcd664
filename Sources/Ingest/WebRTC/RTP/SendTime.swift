internal import Base

/// The header extension that says when a packet was sent (abs-send-time, of libwebrtc). By it a viewer estimates what its network
/// carries. Otherwise it goes by the times of media. Past frames are sent at once: by these times that can look like a full network.
struct SendTime {
  static let uri = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
  /// Bytes that it adds to a header: the mark and length of extensions, and a word (RFC 8285 §4.2).
  static let bytes = 8

  /// Its number, by the viewer's offer.
  let number: UInt8

  /// Writes it behind the fixed header of a packet, whose bit for extensions the caller sets. `target` has `bytes`.
  func write(_ now: MonotonicTime, to target: UnsafeMutableRawBufferPointer) {
    target.storeBytes(of: UInt32(0xBEDE_0001).bigEndian, as: UInt32.self)
    let head = UInt32(number) << 28 | 2 << 24
    target.storeBytes(of: (head | Self.value(now)).bigEndian, toByteOffset: 4, as: UInt32.self)
  }

  /// Seconds in 24 bits, 18 of them behind the point: they wrap each 64 s.
  static func value(_ now: MonotonicTime) -> UInt32 {
    let nanoseconds = UInt64(bitPattern: now.nanoseconds) % 64_000_000_000
    return UInt32(truncatingIfNeeded: (nanoseconds << 18) / 1_000_000_000) & 0xFF_FFFF
  }
}

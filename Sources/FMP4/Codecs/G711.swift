package import NIOCore

/// G.711 (ITU-T G.711): one byte a sample, by one of two laws. Publishers send it; outputs do not carry it. Its record is
/// weir's own: rate (4 bytes), channels (1 byte).
package enum G711 {
  /// Longest frame, in milliseconds. Encoders send 20 to 128.
  static let longestFrame: UInt32 = 1000

  /// The record of a track.
  package static func record(sampleRate: UInt32, channels: UInt8) -> [UInt8] {
    [
      UInt8(truncatingIfNeeded: sampleRate >> 24), UInt8(truncatingIfNeeded: sampleRate >> 16),
      UInt8(truncatingIfNeeded: sampleRate >> 8), UInt8(truncatingIfNeeded: sampleRate), channels,
    ]
  }

  package struct ALaw: G711Configuration {
    package static let id = CodecID.alaw
    package static let name = "G.711 A-law"
    package let sampleRate: UInt32
    package let channels: Int

    package init(sampleRate: UInt32, channels: Int) { (self.sampleRate, self.channels) = (sampleRate, channels) }
  }

  package struct MuLaw: G711Configuration {
    package static let id = CodecID.mulaw
    package static let name = "G.711 µ-law"
    package let sampleRate: UInt32
    package let channels: Int

    package init(sampleRate: UInt32, channels: Int) { (self.sampleRate, self.channels) = (sampleRate, channels) }
  }
}

/// G.711 by either law.
package protocol G711Configuration: AudioConfiguration {
  init(sampleRate: UInt32, channels: Int)
}

extension G711Configuration {
  package static var sampleEntry: (type: FourCC, configuration: FourCC)? { nil }
  package static var rollDistance: Int16? { nil }

  package init(record: ByteBuffer) throws(CodecError) {
    var reader = try ByteReader(record, name: "G.711")
    let (rate, channels) = (try reader.u32(), try reader.u8())
    guard (8000...48_000).contains(rate), (1...2).contains(channels) else {
      throw CodecError(
        .unsupported, "\(Self.name) of \(rate) Hz with \(channels) channels; 8000 to 48000 Hz and 1 or 2 are supported")
    }
    self.init(sampleRate: rate, channels: Int(channels))
  }

  package func record() -> [UInt8] {
    G711.record(sampleRate: sampleRate, channels: UInt8(truncatingIfNeeded: channels))
  }

  package var codecString: String { Self.id.rawValue }
  package var frameDuration: UInt32? { nil }

  package func duration(of frame: ByteBuffer) -> UInt32? {
    let samples = frame.readableBytes / channels
    guard samples > 0, samples <= Int(sampleRate / 1000 * G711.longestFrame) else { return nil }
    return UInt32(samples)
  }
}

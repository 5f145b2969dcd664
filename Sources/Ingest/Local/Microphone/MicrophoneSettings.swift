package import FMP4

/// A microphone and its requested settings. Nil: the device's preference.
package struct MicrophoneSettings: Sendable, Hashable {
  /// Name of the device in ALSA: `default`, `hw:1`, `plughw:CARD=U0x46d,DEV=0`.
  package var device: String
  /// Rate at the device in Hz. The stream's audio always has 48 kHz.
  package var rate: Int?
  package var channels: Int?
  /// Bits per second of the coded audio.
  package var bitRate: Int
  package var coding: CodecID

  package init(
    device: String, rate: Int? = nil, channels: Int? = nil, bitRate: Int = 128_000, coding: CodecID = .aac
  ) {
    self.device = device
    self.rate = rate
    self.channels = channels
    self.bitRate = bitRate
    self.coding = coding
  }
}

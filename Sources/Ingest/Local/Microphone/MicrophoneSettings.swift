package import FMP4

/// Which microphone, and what is wanted of it; what is nil is what the device likes best.
package struct MicrophoneSettings: Sendable, Hashable {
  /// The device's name in ALSA: `default`, `hw:1`, `plughw:CARD=U0x46d,DEV=0`.
  package var device: String
  /// Hz at the device; the stream's audio is always of 48 kHz.
  package var rate: Int?
  package var channels: Int?
  /// Bits a second of the coded audio.
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

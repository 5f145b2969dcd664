internal import FMP4

/// What a stream's sound is also made into.
package struct SoundSpecification: Sendable, Hashable {
  package let coding: AudioCoding
  /// Bits a second.
  package let bitRate: Int

  /// `bitRate` is what suits music in two channels where it is not given.
  package init(_ coding: AudioCoding, bitRate: Int? = nil) {
    self.coding = coding
    self.bitRate = bitRate ?? (coding == .aac ? 160_000 : 96_000)
  }

  /// Names it in addresses: "aac".
  package var name: String { coding.rawValue }

  /// Sound that is coded so already is passed through.
  func applies(to codec: Codec) -> Bool {
    switch codec {
    case .aac: coding != .aac
    case .opus: coding != .opus
    case .h264, .hevc, .av1: false
    }
  }
}

package import FMP4
internal import LibAV

/// An additional audio encoding of a stream.
package struct AudioSpecification: Sendable, Hashable {
  package let coding: CodecID
  /// Bits per second. Nil: as suits music.
  private let statedBitRate: Int?

  /// The codecs that weir encodes.
  package static var codings: [CodecID] { CodecID.allCases.filter { AudioEncoding.all[$0] != nil } }

  /// - Parameter bitRate: bits per second. Nil: as suits music of the source's channels.
  package init(_ coding: CodecID, bitRate: Int? = nil) {
    self.coding = coding
    statedBitRate = bitRate
  }

  /// Bits per second for a source of so many channels.
  func bitRate(channels: Int) -> Int {
    let stereo = AudioEncoding.all[coding]?.musicBitRate ?? 128_000
    return statedBitRate ?? (channels == 1 ? stereo / 2 : stereo)
  }

  /// Name in addresses: "aac".
  package var name: String { coding.rawValue }

  /// Whether the audio needs transcoding. Audio that already has this coding is passed through.
  func applies(to codec: Codec) -> Bool { codec.kind == .audio && codec.id != coding }
}

package import FMP4

/// An additional audio encoding of a stream.
package struct AudioSpecification: Sendable, Hashable {
  package let coding: CodecID
  /// Bits per second.
  package let bitRate: Int

  /// The codecs that weir encodes.
  package static var codings: [CodecID] { CodecID.allCases.filter { AudioEncoding.all[$0] != nil } }

  /// Without a `bitRate` it is one that suits stereo music.
  package init(_ coding: CodecID, bitRate: Int? = nil) {
    self.coding = coding
    self.bitRate = bitRate ?? AudioEncoding.all[coding]?.musicBitRate ?? 128_000
  }

  /// Name in addresses: "aac".
  package var name: String { coding.rawValue }

  /// Whether the audio needs transcoding. Audio that already has this coding is passed through.
  func applies(to codec: Codec) -> Bool { codec.kind == .audio && codec.id != coding }
}

package import FMP4

/// What a stream's audio is also made into.
package struct AudioSpecification: Sendable, Hashable {
  package let coding: CodecID
  /// Bits a second.
  package let bitRate: Int

  /// `bitRate` is what suits music in two channels where it is not given.
  package init(_ coding: CodecID, bitRate: Int? = nil) {
    self.coding = coding
    self.bitRate = bitRate ?? AudioEncoding.all[coding]?.musicBitRate ?? 128_000
  }

  /// Names it in addresses: "aac".
  package var name: String { coding.rawValue }

  /// Audio that is coded so already is passed through.
  func applies(to codec: Codec) -> Bool { codec.kind == .audio && codec.id != coding }
}

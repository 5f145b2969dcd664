import FMP4
import Testing

@Suite("The table of codecs")
struct CodecTableTests {
  /// Names of the MP4 registration authority, and of the standards that bind each codec to MP4.
  private static let registered: [CodecID: (entry: String, configuration: String)] = [
    .h264: ("avc1", "avcC"), .hevc: ("hvc1", "hvcC"), .av1: ("av01", "av1C"), .vp9: ("vp09", "vpcC"),
    .aac: ("mp4a", "esds"), .opus: ("Opus", "dOps"), .ac3: ("ac-3", "dac3"), .eac3: ("ec-3", "dec3"),
  ]

  @Test(arguments: CodecID.allCases)
  func `A codec's configuration is its own, under its registered name`(codec: CodecID) {
    #expect(codec.type.id == codec)
    let registered = Self.registered[codec]
    #expect(codec.type.sampleEntry?.type.description == registered?.entry)
    #expect(codec.type.sampleEntry?.configuration.description == registered?.configuration)
    #expect(codec.isCarried == (registered != nil))
  }

  @Test func `No two codecs have one sample entry, so what is read is what was written`() {
    let entries = CodecID.allCases.compactMap { $0.type.sampleEntry?.type }
    #expect(Set(entries).count == entries.count)
  }

  @Test func `A codec is found by its name, for its own kind alone`() {
    for codec in CodecID.allCases {
      #expect(CodecID(codec.kind, rawValue: codec.rawValue) == codec)
      #expect(CodecID(codec.kind == .video ? .audio : .video, rawValue: codec.rawValue) == nil)
    }
    #expect(CodecID(.video, rawValue: "H264") == nil && CodecID(.audio, rawValue: "") == nil)
  }
}

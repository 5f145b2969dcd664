import FMP4
@testable import RTMP
import Testing

@Suite("Codecs as FLV numbers and names them")
struct FLVCodecNameTests {
  /// Enhanced RTMP v2, "ExVideoTagHeader" and "ExAudioTagHeader".
  @Test(
    arguments: [
      ("avc1", .video, .h264), ("hvc1", .video, .hevc), ("av01", .video, .av1), ("vp09", .video, .vp9),
      ("mp4a", .audio, .aac), ("Opus", .audio, .opus), ("ac-3", .audio, .ac3), ("ec-3", .audio, .eac3),
      (".mp3", .audio, .mpegAudio),
    ] as [(String, MediaKind, CodecID)])
  func `Each codec has its code, in tags of its own kind alone`(_ code: String, _ kind: MediaKind, _ codec: CodecID) {
    #expect(FLVCodecName.codec(kind, fourCC: code) == codec)
    #expect(FLVCodecName.codec(kind == .video ? .audio : .video, fourCC: code) == nil)
  }

  @Test(arguments: ["vp08", "AC-3", "fLaC", "opus", "AVC1", "", "avc1 "])
  func `Other codes are not taken`(_ code: String) {
    #expect(FLVCodecName.codec(.video, fourCC: code) == nil && FLVCodecName.codec(.audio, fourCC: code) == nil)
  }

  /// FLV 10.1, E.4.3.1 and E.4.2.1.
  @Test func `A number is taken or named, never both`() {
    #expect(FLVCodecName.legacyTaken == [7: .h264, 12: .hevc])
    for number in FLVCodecName.legacyTaken.keys { #expect(FLVCodecName.legacyVideo[number] == nil) }
    #expect(FLVCodecName.legacyVideo[4] == "VP6" && FLVCodecName.legacyVideo[0] == nil)
    #expect(FLVCodecName.legacyAudioTaken == [2: .mpegAudio, 7: .alaw, 8: .mulaw, 14: .mpegAudio])
    for number in FLVCodecName.legacyAudioTaken.keys { #expect(FLVCodecName.legacyAudio[number] == nil) }
    #expect(FLVCodecName.legacyAudio[11] == "Speex")
    #expect(FLVCodecName.legacyAudio[10] == nil, "AAC")
    // Four bits each.
    #expect(
      FLVCodecName.legacyVideo.keys.allSatisfy { $0 < 16 } && FLVCodecName.legacyAudio.keys.allSatisfy { $0 < 16 })
  }

  @Test func `Audio that is not taken is called by its usual name, or by its code`() {
    #expect(FLVCodecName.audio(fourCC: "fLaC") == "FLAC")
    #expect(FLVCodecName.audio(fourCC: "????") == "????")
  }
}

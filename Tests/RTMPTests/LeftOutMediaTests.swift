import FMP4
import NIOCore
@testable import Publishing
@testable import RTMP
import Support
import Testing

/// What a publisher sends and weir does not take is left out and told; what it takes goes on.
@Suite("RTMP sessions: what is left out")
struct LeftOutMediaTests {
  typealias S = RTMPScript

  private func publishing(_ bytes: [UInt8]) -> SessionDriver {
    var driver = SessionDriver()
    driver.feed(S.opening() + bytes)
    return driver
  }

  private let speex: [UInt8] = [0xB2, 0x1E, 0x9D, 0x66, 0x00]

  /// One audio message of a further track, one track a message.
  private func further(_ track: UInt8, _ packetType: UInt8, _ fourCC: String, _ body: [UInt8]) -> [UInt8] {
    [0x95, packetType] + Array(fourCC.utf8) + [track] + body
  }

  @Test func audioInSpeexLeavesTheVideoAlone() throws {
    var sent = S.metadata() + S.video(S.avcHeader(), 0)
    for frame in UInt32(0)..<50 {
      sent += S.audio(speex, frame * 40) + S.video(S.avcFrame(key: frame % 25 == 0), frame * 40)
    }
    let driver = publishing(sent)
    #expect(driver.ending == nil && driver.endings.isEmpty)
    #expect(driver.tracks.map { $0.map(\.codec.name) } == [["H.264"]])
    #expect(driver.times(.video).count == 50)
    #expect(driver.warnings == [.leftOutCodec(.audio, "Speex")])
    #expect(driver.lost == 50)
    let told =
      "audio in Speex is left out; weir takes AAC, Opus, AC-3, E-AC-3, MP1, MP2, MP3 and G.711: choose one of them in the"
      + " encoder"
    #expect(driver.logs.filter { $0 == told }.count == 1)
  }

  @Test func theVideoDoesNotWaitTwoSecondsForAudioThatCannotBeTaken() {
    var driver = publishing(
      S.metadata() + S.video(S.avcHeader(), 0) + S.audio(speex, 0) + S.video(S.avcFrame(key: true), 0))
    driver.tick(499_000_000)
    #expect(driver.samples.isEmpty)
    driver.tick(500_000_000)
    #expect(driver.times(.video) == [0])
    #expect(driver.warnings == [.leftOutCodec(.audio, "Speex")])
  }

  /// A key frame of VP9, as Enhanced RTMP has it; its sync code is damaged.
  private func vp9(_ isDamaged: Bool) -> [UInt8] {
    [0x91] + Array("vp09".utf8) + [0x82, 0x49, 0x83, isDamaged ? 0x43 : 0x42, 0x40, 0x27, 0xF0, 0x16, 0x76, 0x06]
  }

  @Test func vp9ThatCannotBeReadIsCountedAndToldOnce() throws {
    var sent = S.metadata() + S.audio(S.aacHeader(), 0)
    for frame in UInt32(0)..<50 {
      sent += S.audio(S.aacFrame, frame * 40) + S.video(vp9(frame < 40), frame * 40)
    }
    var driver = publishing(sent)
    driver.tick(3_000_000_000)
    let warning = PublicationWarning.unreadable(.video, "a key frame of VP9 without its sync code (at byte 1)")
    #expect(driver.ending == nil && driver.endings.isEmpty)
    #expect(publishing(S.metadata() + S.video(vp9(true), 0) + S.video(vp9(true), 40)).warnings == [warning])
    #expect(driver.warnings.isEmpty, "it can be read in the end")
    #expect(driver.logs.filter { $0 == warning.description }.count == 1)
    #expect(driver.lost == 40 && driver.times(.video).count == 10)
    // The audio of the time before.
    #expect(driver.early == 50 - driver.times(.audio).count)
    #expect(driver.tracks.last?.map(\.codec.name) == ["VP9", "AAC"])
  }

  /// An AudioSpecificConfig of object type 1 (Main), 44.1 kHz, two channels.
  private let aacMain: [UInt8] = [0x0A, 0x10]

  @Test func audioInAFormOfAACThatIsNotTakenLeavesTheVideoAlone() throws {
    var sent = S.metadata() + S.video(S.avcHeader(), 0) + S.audio([0xAF, 0] + aacMain, 0)
    for frame in UInt32(0)..<50 {
      sent += S.audio(S.aacFrame, frame * 40) + S.video(S.avcFrame(key: frame % 25 == 0), frame * 40)
    }
    let driver = publishing(sent)
    #expect(driver.ending == nil && driver.endings.isEmpty)
    #expect(driver.tracks.map { $0.map(\.codec.name) } == [["H.264"]])
    #expect(driver.times(.video).count == 50)
    let told = "AAC configuration: AAC of object type 1 (Main); supported: LC, HE-AAC, HE-AAC v2"
    #expect(driver.warnings == [.leftOutForm(.audio, told)])
  }

  @Test func `A warning of a track that is left out is withdrawn when it can be taken`() throws {
    let video = S.metadata() + S.video(S.avcHeader(), 0) + S.video(S.avcFrame(key: true), 0)
    let flac = S.audio([0x91] + Array("fLaC".utf8) + [1, 2], 0)
    for (bad, warnings) in [
      (flac, [.leftOutCodec(.audio, "FLAC")]), (S.audio(speex, 0), [.leftOutCodec(.audio, "Speex")]),
      (
        S.audio([0xAF, 0] + aacMain, 0),
        [.leftOutForm(.audio, "AAC configuration: AAC of object type 1 (Main); supported: LC, HE-AAC, HE-AAC v2")]
      ),
    ] as [([UInt8], [PublicationWarning])] {
      var driver = publishing(video + bad)
      #expect(driver.warnings == warnings)
      driver.feed(S.audio(S.aacHeader(), 0) + S.audio(S.aacFrame, 0) + S.audio(S.aacFrame, 21))
      #expect(driver.warnings.isEmpty && driver.times(.audio).count == 2)
      // It may be left out again.
      driver.feed(flac)
      #expect(driver.warnings == [.leftOutCodec(.audio, "FLAC")])
    }
  }

  @Test func aTrackThatCanBeTakenIsTakenBehindOneThatCannot() throws {
    var sent = S.metadata() + S.video(S.avcHeader(), 0) + S.audio([0xAF, 0] + aacMain, 0)
    sent += S.audio(S.aacFrame, 0) + S.audio(further(1, 0, "mp4a", PublishedRecord.aac48), 0)
    for frame in UInt32(0)..<50 {
      sent += S.audio(S.aacFrame, frame * 40)
      sent += S.audio(further(1, 1, "mp4a", Array(S.aacFrame.dropFirst(2))), frame * 40)
      sent += S.video(S.avcFrame(key: frame % 25 == 0), frame * 40)
    }
    let driver = publishing(sent)
    #expect(driver.tracks.map { $0.map(\.codec.name) } == [["H.264", "AAC"]])
    #expect(driver.times(TrackID(.audio, 2)).count == 50)
  }

  @Test func audioAloneThatCannotBeTakenEndsThePublicationWithTheReason() throws {
    var driver = publishing(S.metadata(video: false) + S.audio([0xAF, 0] + aacMain, 0) + S.audio(S.aacFrame, 0))
    driver.tick(2_000_000_000)
    #expect(
      driver.ending == .failed("AAC configuration: AAC of object type 1 (Main); supported: LC, HE-AAC, HE-AAC v2"))
  }

  @Test func aSecondTrackOfAudioIsATrackOfItsOwn() throws {
    var sent = S.metadata() + S.headers + S.audio(further(1, 0, "mp4a", PublishedRecord.aac44), 0)
    for frame in UInt32(0)..<50 {
      sent += S.video(S.avcFrame(key: frame % 25 == 0), frame * 40)
      sent += S.audio(S.aacFrame, frame * 40) + S.audio(further(1, 1, "mp4a", [0x21, 0x10, 0x04]), frame * 40)
    }
    let driver = publishing(sent)
    #expect(driver.ending == nil && driver.endings.isEmpty)
    #expect(driver.tracks.map { $0.map(\.id) } == [[.video, .audio, TrackID(.audio, 2)]])
    #expect(driver.times(.audio).count == 50 && driver.times(TrackID(.audio, 2)).count == 50)
    #expect(driver.samples.filter { $0.track == .audio }.allSatisfy { $0.payload.readableBytes == 6 })
    #expect(driver.samples.filter { $0.track == TrackID(.audio, 2) }.allSatisfy { $0.payload.readableBytes == 3 })
    #expect(driver.warnings.isEmpty)
  }

  @Test func aFurtherVideoThatCannotBeReadCostsThatTrackAlone() throws {
    let broken: [UInt8] = [0x96, 0x00] + Array("avc1".utf8) + [1, 1, 2]
    var sent = S.metadata() + S.headers + S.video(broken, 0)
    for frame in UInt32(0)..<50 {
      sent += S.video(S.avcFrame(key: frame % 25 == 0), frame * 40) + S.audio(S.aacFrame, frame * 40)
      sent += S.video([0x96, 0x03] + Array("avc1".utf8) + [1, 0, 0, 0, 1, 0x65], frame * 40)
    }
    let driver = publishing(sent)
    #expect(driver.ending == nil && driver.endings.isEmpty && driver.lost == 50)
    #expect(driver.tracks.map { $0.map(\.id) } == [[.video, .audio]])
    #expect(driver.times(.video).count == 50 && driver.warnings.count == 1)
  }

  @Test func ofSeveralAudioTracksTheFirstThatCanBeTakenIs() throws {
    var sent = S.metadata() + S.video(S.avcHeader(), 0) + S.audio([0x90] + Array("fLaC".utf8), 0)
    sent += S.audio(further(1, 0, "mp4a", PublishedRecord.aac48), 0)
    for frame in UInt32(0)..<50 {
      sent += S.audio([0x91] + Array("fLaC".utf8) + [1, 2], frame * 40)
      sent += S.audio(further(1, 1, "mp4a", Array(S.aacFrame.dropFirst(2))), frame * 40)
      sent += S.video(S.avcFrame(key: frame % 25 == 0), frame * 40)
    }
    let driver = publishing(sent)
    #expect(driver.tracks.map { $0.map(\.codec.name) } == [["H.264", "AAC"]])
    #expect(driver.times(TrackID(.audio, 2)).count == 50)
    #expect(driver.warnings == [.leftOutCodec(.audio, "FLAC")])
  }

  @Test func whereVideoAndAudioCannotBeTakenThePublicationEndsByNameAfterTwoSeconds() throws {
    var driver = publishing(S.metadata(video: false) + S.audio(speex, 0) + S.audio(speex, 24))
    driver.tick(1_999_000_000)
    #expect(driver.ending == nil)
    driver.tick(2_000_000_000)
    let text =
      "codec Speex unsupported; supported: H.264, HEVC, AV1, VP9, AAC, Opus, AC-3, E-AC-3, MPEG audio, G.711 A-law,"
      + " G.711 µ-law"
    #expect(driver.ending == .failed(text))
    #expect(try driver.answers().last?.last?["description"] == .string(text))
    #expect(driver.endings == [.failure])
  }

  @Test func whatIsLeftOutIsToldOnceHoweverManyNamesItHas() {
    let names = (0..<200).map { "c\($0 + 100)" }
    var sent = S.metadata() + S.headers
    for (index, name) in names.enumerated() {
      sent += S.audio([0x91] + Array(name.utf8) + [1], 0)
      sent += S.audio(further(UInt8(index + 1), 0, "mp4a", PublishedRecord.aac48), 0)
    }
    let driver = publishing(sent + S.media(milliseconds: 1000))
    #expect(driver.warnings == [.leftOutCodec(.audio, "c100"), .leftOutTrack(.audio)])
    #expect(driver.logs.count == 2)
    #expect(driver.times(.video).isEmpty, "the start waits for fourteen tracks that are configured")
  }
}

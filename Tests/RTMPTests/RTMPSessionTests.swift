import FMP4
import NIOCore
import Publishing
@testable import RTMP
import Support
import Testing

@Suite("RTMP sessions: commands")
struct RTMPCommandTests {
  typealias S = RTMPScript

  @Test func connectIsAnsweredWithWhatTheServerDoes() throws {
    var driver = SessionDriver()
    driver.feed(S.handshake + S.connect())
    let result = try #require(try driver.answers().first)
    #expect(result.first == .string("_result"))
    #expect(result[1] == .number(1))
    let information = try #require(result.last)
    #expect(information["code"] == .string("NetConnection.Connect.Success"))
    #expect(
      information["fourCcList"]
        == .strictArray(
          ["av01", "avc1", "hvc1", "vp09", ".mp3", "Opus", "ac-3", "ec-3", "mp4a"].map { .string($0) }))
    #expect(information["videoFourCcInfoMap"]?.properties?.count == 4)
    #expect(information["audioFourCcInfoMap"]?.properties?.count == 5)
    #expect(information["videoFourCcInfoMap"]?["hvc1"] == .number(4))
    #expect(information["audioFourCcInfoMap"]?["Opus"] == .number(4))
    #expect(information["capsEx"] == .number(14), "multitrack, ModEx, nanoseconds")
  }

  @Test func aPublisherIsAskedForAndHearsThatItMayBegin() throws {
    var driver = SessionDriver()
    driver.feed(S.opening("cam?key=s3cret"))
    #expect(driver.asked.map(\.stream.description) == ["cam"])
    #expect(driver.asked.first?.key?.matches(Secret("s3cret")) == true)
    #expect(driver.asked.first?.software == "FMLE/3.0 (test)")
    let answers = try driver.answers()
    #expect(
      answers.map { $0.first?.string ?? "" } == [
        "_result", "_result", "_result", "onFCPublish", "_result", "onStatus",
      ])
    // createStream names stream 1.
    #expect(answers[4] == [.string("_result"), .number(4), .null, .number(1)])
    #expect(try driver.codes().last == "NetStream.Publish.Start")
  }

  @Test(arguments: ["live", "live/", "/live", "live?key=s3cret", "live/?key=s3cret"])
  func theApplicationIsLive(_ app: String) throws {
    var driver = SessionDriver()
    driver.feed(S.handshake + S.connect(app: app) + S.createStream + S.publish("cam"))
    #expect(driver.asked.count == 1)
    #expect((driver.asked.first?.key != nil) == app.contains("key"))
  }

  @Test func theKeyMayStandInTheURLAndPercentEscapesAreRead() {
    var driver = SessionDriver()
    driver.feed(
      S.handshake + S.connect(tcURL: "rtmp://h:1935/live?a=b&key=a%2Fb%") + S.createStream + S.publish("/cam"))
    #expect(driver.asked.first?.key?.matches(Secret("a/b%")) == true)
    #expect(driver.asked.first?.stream.description == "cam")
  }

  @Test func anotherApplicationIsRefusedByNameWithoutItsKey() throws {
    var driver = SessionDriver()
    driver.feed(S.handshake + S.connect(app: "vod/x?key=s3cret"))
    var answer = try #require(try driver.answers().first)
    #expect(answer.first == .string("_error"))
    #expect(answer.last?["code"] == .string("NetConnection.Connect.Rejected"))
    func told(_ application: String) -> AMFValue {
      .string(
        "application \"\(application)\" is unknown; publish to rtmp://HOST/live/NAME"
          + " (server rtmp://HOST/live, stream key NAME)")
    }
    #expect(answer.last?["description"] == told("vod/x"))
    #expect(driver.endings == [.failure])
    #expect(!driver.logs.joined().contains("s3cret"))
    // Alone it would name a stream.
    driver = SessionDriver()
    driver.feed(S.handshake + S.connect(app: "vod?key=s3cret") + S.createStream + S.publish("cam?key=s3cret"))
    answer = try #require(try driver.answers().last)
    #expect(answer.last?["code"] == .string("NetStream.Publish.BadName"))
    #expect(answer.last?["description"] == told("vod"))
    #expect(driver.endings == [.failure] && driver.asked.isEmpty)
    #expect(!driver.logs.joined().contains("s3cret"))
  }

  @Test(arguments: [
    ("cam", ""), ("live/cam", ""), ("cam?key=s3cret", ""), ("live/cam?key=s3cret", ""), ("", "cam?key=s3cret"),
    ("LIVE", "cam"), ("live/_definst_", "cam?key=s3cret"),
  ])
  func `An address may be in one field, and the key behind it`(_ app: String, _ name: String) {
    var driver = SessionDriver()
    driver.feed(S.handshake + S.connect(app: app, tcURL: "") + S.createStream + S.publish(name))
    #expect(driver.asked.map(\.stream.description) == ["cam"])
    #expect(driver.asked.first?.key?.matches(Secret("s3cret")) == ((app + name).contains("key") ? true : nil))
  }

  @Test(arguments: [
    "..", "%2e%2e", "a/b", "a\\b", "c\u{0}am", "", "?key=x", ".hidden", "с\u{430}m", "a b", "../../etc/passwd",
  ])
  func namesOutsideTheGrammarAreRefused(_ name: String) throws {
    var driver = SessionDriver()
    driver.feed(S.opening(name))
    #expect(driver.asked.isEmpty)
    #expect(try driver.codes().last == "NetStream.Publish.BadName")
    #expect(try driver.answers().last?.last?["description"]?.string?.contains(StreamName.grammar) == true)
    #expect(driver.endings == [.failure])
  }

  @Test func aNameOfSixtyFourIsAcceptedAndOneMoreRefused() {
    for (count, isAsked) in [(64, true), (65, false), (4096, false)] {
      var driver = SessionDriver()
      driver.feed(S.opening(String(repeating: "a", count: count)))
      #expect(!driver.asked.isEmpty == isAsked)
      #expect((driver.logs.last?.utf8.count ?? 0) < 400)
    }
  }

  @Test func aRefusedPublisherHearsWhy() throws {
    var driver = SessionDriver()
    driver.refusal = "the publish key is missing or wrong"
    driver.feed(S.opening() + S.headers + S.media(milliseconds: 200))
    let answer = try #require(try driver.answers().last)
    #expect(answer.last?["level"] == .string("error"))
    #expect(answer.last?["code"] == .string("NetStream.Publish.BadName"))
    #expect(answer.last?["description"] == .string("the publish key is missing or wrong"))
    #expect(driver.endings == [.failure])
    #expect(driver.events.isEmpty)
  }

  @Test func mediaBeforeAdmissionIsNotPassedOn() {
    var driver = SessionDriver()
    driver.feed(S.handshake + S.connect() + S.createStream + S.headers + S.media(milliseconds: 400))
    #expect(driver.events.isEmpty)
    #expect(driver.endings.isEmpty)
  }

  @Test func aClientThatWantsToPlayIsToldWhere() throws {
    var driver = SessionDriver()
    driver.feed(
      S.handshake + S.connect() + S.createStream
        + S.command([.string("play"), .number(0), .null, .string("cam?key=s3cret")], stream: 1))
    let answer = try #require(try driver.answers().last)
    #expect(answer.last?["code"] == .string("NetStream.Play.Failed"))
    #expect(answer.last?["description"] == .string("weir plays over HTTP: /watch/cam"))
    #expect(!driver.endings.isEmpty)
  }

  @Test func aHundredCommandsAreHeardAndOneMoreIsTooMany() throws {
    var driver = SessionDriver()
    driver.feed(S.handshake + S.connect())
    for _ in 0..<99 { driver.feed(S.createStream) }
    #expect(driver.endings.isEmpty)
    driver.feed(S.createStream)
    #expect(driver.endings == [.failure])
  }

  @Test func unknownCommandsAreAnsweredOrPassedOver() throws {
    var driver = SessionDriver()
    driver.feed(
      S.handshake + S.connect() + S.command([.string("_checkbw"), .number(9), .null])
        + S.command([.string("getStreamLength"), .number(10), .null, .string("cam")])
        + S.command([.string("whatever"), .number(11), .null]) + S.command([.string("silent"), .number(0), .null]))
    #expect(try driver.answers().dropFirst().map { $0[1] } == [.number(9), .number(10), .number(11)])
    #expect(driver.endings.isEmpty)
  }

  @Test func commandsInTheFormOfAMF3AreUnderstood() throws {
    let connect = S.amf([.string("connect"), .number(1), .object(["app": .string("live")])])
    var driver = SessionDriver()
    driver.feed(S.handshake + S.message(17, [0] + connect, stream: 0, chunkStream: 3))
    #expect(try driver.codes() == ["NetConnection.Connect.Success"])
  }

  @Test func pingsAreAnswered() throws {
    var driver = SessionDriver()
    driver.feed(S.handshake + S.connect())
    let before = driver.sent.count
    driver.feed(S.message(4, [0, 6, 1, 2, 3, 4], stream: 0, chunkStream: 2))
    #expect(Array(driver.sent[before...].suffix(6)) == [0, 7, 1, 2, 3, 4])
  }

  @Test func receivedBytesAreAcknowledgedAtEveryWindow() throws {
    var driver = SessionDriver()
    driver.feed(S.opening() + S.message(5, S.u32(10_000), stream: 0, chunkStream: 2) + S.headers)
    let before = driver.sent.count
    for _ in 0..<40 { driver.feed(S.message(9, [UInt8](repeating: 0x57, count: 1000), time: 1)) }
    var bytes = ByteBuffer(bytes: driver.sent[before...])
    var reader = ChunkReader()
    var counts: [UInt32] = []
    while let message = try reader.next(&bytes, now: 0) {
      if message.type == 3, let count = message.payload.getInteger(at: 0, as: UInt32.self) { counts.append(count) }
    }
    #expect(counts.count == 4)
    #expect(zip(counts, counts.dropFirst()).allSatisfy { $1 - $0 >= 10_000 && $1 - $0 < 11_100 })
  }

  @Test(arguments: [
    [AMFValue.string("FCUnpublish"), .number(6), .null, .string("cam")],
    [.string("deleteStream"), .number(7), .null, .number(1)], [.string("closeStream"), .number(0), .null],
  ])
  func thePublisherEndsItsStreamInThreeWays(_ command: [AMFValue]) throws {
    var driver = SessionDriver()
    driver.feed(S.opening() + S.headers + S.media(milliseconds: 400))
    driver.feed(S.command(command, stream: 1))
    #expect(driver.ending == .finished)
    #expect(try driver.codes().last == "NetStream.Unpublish.Success")
    #expect(driver.endings.isEmpty)
    // And may begin again on the same connection.
    driver.feed(S.createStream + S.publish("cam2") + S.headers + S.media(milliseconds: 400))
    #expect(driver.asked.map(\.stream.description) == ["cam", "cam2"])
    #expect(driver.tracks.count == 2)
  }

  /// The beginning of a message of video, and the end of the stream.
  @Test(arguments: [(4, true), (5, false)])
  func whatAnEndedStreamLeftUnfinishedIsBounded(_ chunks: Int, _ mayGoOn: Bool) {
    var driver = SessionDriver()
    driver.feed(S.opening() + S.headers + S.media(milliseconds: 400))
    let message = S.message(9, [UInt8](repeating: 0x27, count: 1 << 20), time: 400, chunkStream: 6, chunkSize: 4 << 10)
    driver.feed(S.message(1, S.u32(4 << 10), stream: 0, chunkStream: 2))
    // Whole chunks, with a header of a byte each but for the first.
    driver.feed(Array(message.prefix(11 + chunks * ((4 << 10) + 1))))
    #expect(driver.session.heldBytes == chunks * (4 << 10))
    driver.feed(S.command([.string("deleteStream"), .number(7), .null, .number(1)], stream: 1))
    #expect(driver.ending == .finished)
    #expect(driver.endings == (mayGoOn ? [] : [.failure]))
    #expect(driver.session.heldBytes == (mayGoOn ? chunks * (4 << 10) : 0))
  }

  @Test func aSessionInPiecesIsTheSameSession() {
    let bytes =
      S.opening("cam") + S.metadata(rate: 25) + S.headers + S.media(milliseconds: 2000)
      + S.command([.string("FCUnpublish"), .number(6), .null, .string("cam")])
    var whole = SessionDriver()
    whole.feed(bytes)
    #expect(whole.samples.count > 100)
    #expect(whole.ending == .finished)
    for piece in [1, 2, 3, 7, 100, 1000] {
      var driver = SessionDriver()
      driver.feed(bytes, piece: piece)
      #expect(driver.transcript == whole.transcript)
      #expect(driver.asked == whole.asked)
    }
  }
}

@Suite("RTMP sessions: media")
struct RTMPMediaTests {
  typealias S = RTMPScript

  private func publishing(_ bytes: [UInt8]) -> SessionDriver {
    var driver = SessionDriver()
    driver.feed(S.opening())
    driver.feed(bytes)
    return driver
  }

  @Test func videoAndAudioBeginAtZeroOnTheirGrids() throws {
    let driver = publishing(S.metadata() + S.headers + S.media(from: 5000, milliseconds: 2000))
    let tracks = try #require(driver.tracks.first)
    #expect(tracks.map(\.id) == [.video, .audio])
    #expect(tracks.map(\.timescale) == [25_000, 48_000])
    #expect(tracks.first?.frameDuration == 1000)
    #expect(driver.times(.video) == (0..<50).map { $0 * 1000 })
    #expect(driver.times(.audio) == (0..<Int64(driver.times(.audio).count)).map { $0 * 1024 })
    #expect(driver.samples.allSatisfy { $0.duration != nil })
    guard case .clock(let anchor)? = driver.events.first else {
      Issue.record("the clock is not first")
      return
    }
    #expect(anchor.mediaTime == .zero)
    // Everything came at once at time 0: the last sample was two seconds old.
    #expect(anchor.wallTime <= 1_000_000_000_000_000_000)
  }

  @Test func theFirstFrameIsAKeyFrameAndAudioBeforeItIsLeftOut() throws {
    var bytes = S.metadata() + S.headers
    for time in stride(from: UInt32(0), to: 1000, by: 20) {
      if time % 40 == 0, time != 400 { bytes += S.video(S.avcFrame(key: false), time) }
      if time == 400 { bytes += S.video(S.avcFrame(key: true), time) }
      bytes += S.audio(S.aacFrame, time)
    }
    let driver = publishing(bytes)
    let first = try #require(driver.samples.first { $0.track == .video })
    #expect(first.isSync)
    #expect(driver.times(.video).count == 15)
    // Origin is the first audio kept, at most an audio frame before the video.
    #expect(driver.times(.audio).first == 0)
    #expect(first.decodeTime <= 44 * 25)
  }

  @Test func theSameConfigurationAgainIsNoChange() {
    var bytes = S.metadata() + S.headers
    for second in 0..<UInt32(5) {
      bytes += S.video(S.avcHeader(), second * 1000) + S.audio(S.aacHeader(), second * 1000)
      bytes += S.media(from: second * 1000, milliseconds: 1000)
    }
    let driver = publishing(bytes)
    #expect(driver.tracks.count == 1)
    #expect(driver.times(.video).count == 125)
  }

  @Test func anotherConfigurationIsToldBeforeItsFirstKeyFrame() throws {
    let driver = publishing(
      S.metadata() + S.headers + S.media(milliseconds: 1000) + S.video(S.avcHeader(PublishedRecord.avc2997), 1000)
        + S.video(S.avcFrame(key: false), 1000) + S.video(S.avcFrame(key: true), 1040)
        + S.audio(S.aacFrame, 1040))
    #expect(driver.tracks.count == 2)
    #expect(driver.tracks.last?.first?.timescale == 30_000)
    #expect(driver.tracks.last?.count == 2)
    let change = try #require(
      driver.events.lastIndex {
        if case .tracks = $0 { return true }
        return false
      })
    guard case .sample(let sample) = driver.events[change + 1] else {
      Issue.record("no sample after the change")
      return
    }
    #expect(sample.isSync)
    // 1040 ms on the new timescale, or the millisecond beside it.
    #expect(abs(sample.decodeTime - 1040 * 30) <= 30)
  }

  @Test func anotherSampleRateKeepsTheTimeline() throws {
    let driver = publishing(
      S.metadata(video: false) + S.audio(S.aacHeader(), 0) + S.media(milliseconds: 1000, hasVideo: false)
        + S.audio(S.aacHeader(PublishedRecord.aac44), 1000) + S.audio(S.aacFrame, 1003))
    #expect(driver.tracks.map { $0.map(\.timescale) } == [[48_000], [44_100]])
    let last = try #require(driver.samples.last)
    #expect(abs(last.decodeTime - 1003 * 44_100 / 1000) <= 45)
  }

  @Test(arguments: [true, false])
  func aStreamOfOneKindBeginsAtOnceWhenTheMetadataSaysSo(_ isVideo: Bool) {
    let driver = publishing(
      S.metadata(video: isVideo, audio: !isVideo) + S.headers.prefix(0)
        + (isVideo ? S.video(S.avcHeader(), 0) : S.audio(S.aacHeader(), 0))
        + S.media(milliseconds: 100, hasVideo: isVideo, hasAudio: !isVideo))
    #expect(driver.tracks.map { $0.map(\.kind) } == [[isVideo ? .video : .audio]])
    #expect(driver.samples.count >= 3)
  }

  @Test func withoutMetadataTheSecondKindIsWaitedForHalfASecond() {
    var driver = publishing(S.video(S.avcHeader(), 0) + S.media(milliseconds: 480, hasAudio: false))
    #expect(driver.events.isEmpty)
    driver.feed(S.video(S.avcFrame(key: false), 480) + S.video(S.avcFrame(key: false), 520))
    #expect(driver.times(.video).count == 14)
  }

  @Test func audioThatWasAnnouncedAndNeverComesIsGivenUpAfterTwoSeconds() {
    var driver = publishing(S.metadata() + S.video(S.avcHeader(), 0) + S.media(milliseconds: 1000, hasAudio: false))
    #expect(driver.events.isEmpty)
    // By the clock, without further input.
    driver.tick(1_999_999_999)
    #expect(driver.events.isEmpty)
    driver.tick(2_000_000_000)
    #expect(driver.times(.video).count == 25)
    #expect(driver.logs.contains { $0.contains("audio never came") })
    #expect(driver.warnings == [.neverCame(.audio)])
    // Nothing of it is lost when it does come.
    driver.feed(S.audio(S.aacHeader(), 1000))
    for index in 0..<UInt32(10) { driver.feed(S.audio(S.aacFrame, 1000 + index * 64 / 3)) }
    #expect(driver.tracks.map(\.count) == [1, 2])
    #expect(driver.times(.audio) == (0..<10).map { 48_000 + $0 * 1024 })
  }

  @Test func withoutMediaItsProgressIsToldByTheClock() {
    var driver = SessionDriver()
    driver.now = 5_000_000_000
    driver.feed(S.opening() + S.metadata(audio: false) + S.video(S.avcHeader(), 700))
    for index in 0..<UInt32(10) {
      driver.now += 40_000_000
      driver.feed(S.video(S.avcFrame(key: index == 0), 700 + index * 40))
    }
    let newest = driver.now
    #expect(driver.session.deadline(after: newest) == newest + 200_000_000)
    driver.tick(newest + 199_999_999)
    #expect(driver.progress.isEmpty)
    driver.tick(newest + 200_000_000)
    driver.tick(newest + 390_000_000)
    driver.tick(newest + 400_000_000)
    // The tenth frame lies 360 ms behind the first.
    #expect(driver.progress == [560, 760])
    // Media that comes again makes the clock wait again.
    driver.now = newest + 500_000_000
    driver.feed(S.video(S.avcFrame(key: false), 1100))
    #expect(driver.session.deadline(after: driver.now) == driver.now + 200_000_000)
    driver.tick(driver.now + 100_000_000)
    #expect(driver.progress == [560, 760])
  }

  @Test func progressDoesNotRunAheadOfASlowPublisher() {
    var driver = SessionDriver()
    driver.feed(S.opening() + S.metadata(audio: false) + S.video(S.avcHeader(), 0))
    // Its clock loses a tenth.
    for index in 0..<UInt32(100) {
      driver.now = .at(Int64(index) * 44_000_000)
      driver.feed(S.video(S.avcFrame(key: index == 0), index * 40))
    }
    driver.tick(driver.now + 200_000_000)
    #expect(driver.progress == [99 * 40 + 200])
  }

  @Test func videoThatComesLateJoins() {
    var bytes = S.metadata() + S.audio(S.aacHeader(), 0) + S.media(milliseconds: 3000, hasVideo: false)
    bytes += S.video(S.avcHeader(), 3000) + S.video(S.avcFrame(key: false), 3000) + S.video(S.avcFrame(key: true), 3040)
    let driver = publishing(bytes)
    #expect(driver.tracks.map { $0.map(\.id) } == [[.audio], [.video, .audio]])
    #expect(driver.times(.video) == [3040 * 25])
    #expect(driver.times(.audio).count == 141)
  }

  @Test func theBoundaryOf24BitsIsNoEvent() {
    let driver = publishing(S.metadata() + S.headers + S.media(from: 16_776_000, milliseconds: 4000))
    #expect(driver.discontinuities == 0)
    #expect(driver.times(.video) == (0..<100).map { $0 * 1000 })
  }

  @Test func theWrapOf32BitsIsNoEvent() {
    let driver = publishing(S.metadata() + S.headers + S.media(from: 0xFFFF_FFFF - 2000, milliseconds: 4000))
    #expect(driver.discontinuities == 0)
    #expect(driver.times(.video) == (0..<100).map { $0 * 1000 })
    #expect(driver.times(.audio) == (0..<Int64(driver.times(.audio).count)).map { $0 * 1024 })
  }

  @Test(arguments: [0, 3_600_000, 40_000_000] as [UInt32])
  func aJumpOfTheTimestampsIsADiscontinuityWithoutAHole(_ target: UInt32) throws {
    let driver = publishing(
      S.metadata() + S.headers + S.media(from: 8_000_000, milliseconds: 2000)
        + S.media(from: target, milliseconds: 2000))
    #expect(driver.discontinuities == 1)
    #expect(driver.times(.video) == (0..<100).map { $0 * 1000 })
    let audio = driver.times(.audio)
    #expect(zip(audio, audio.dropFirst()).allSatisfy { $1 - $0 >= 1024 && $1 - $0 <= 2048 })
    #expect(driver.tracks.count == 1)
  }

  @Test func reorderedFramesKeepTheirOffsets() {
    var bytes = S.metadata(audio: false) + S.video(S.avcHeader(), 0)
    for (index, offset) in [80, 200, 80, 0, 40, 80].enumerated() {
      bytes += S.video(S.avcFrame(key: index == 0, composition: Int32(offset)), UInt32(index * 40))
    }
    let driver = publishing(bytes)
    #expect(driver.samples.map(\.compositionOffset) == [2000, 5000, 2000, 0, 1000, 2000])
  }

  @Test func negativeOffsetsSurvive() {
    let driver = publishing(
      S.metadata(audio: false) + S.video(S.avcHeader(), 100) + S.video(S.avcFrame(key: true), 100)
        + S.video(S.avcFrame(key: false, composition: -40), 140))
    #expect(driver.samples.map(\.compositionOffset) == [0, -1000])
  }

  @Test func damagedUnitsAreDroppedAndTheRestGoesOn() {
    var damaged = S.avcFrame(key: false)
    damaged[5] = 0x7F
    let driver = publishing(
      S.metadata() + S.headers + S.media(milliseconds: 400) + S.video(damaged, 400) + S.video(damaged, 440)
        + S.video(S.avcFrame(key: false), 480))
    #expect(driver.times(.video).count == 11)
    #expect(driver.lost == 2)
    #expect(driver.logs.count { $0.contains("damaged") } == 1)
    #expect(driver.endings.isEmpty)
  }

  @Test func anUnknownCodecEndsThePublicationByName() throws {
    let driver = publishing(S.metadata() + S.video([0x90] + Array("vp08".utf8) + [1, 2, 3], 0))
    let text =
      "codec vp08 unsupported; supported: H.264, HEVC, AV1, VP9, AAC, Opus, AC-3, E-AC-3, MPEG audio, G.711 A-law, G.711 µ-law"
    #expect(driver.ending == .failed(text))
    #expect(try driver.answers().last?.last?["description"] == .string(text))
    #expect(driver.endings == [.failure])
  }

  @Test func aConfigurationThatCannotBeReadEndsThePublication() throws {
    let driver = publishing(S.video(S.avcHeader([1, 100, 0, 30]), 0))
    guard case .failed(let text)? = driver.ending else {
      Issue.record("not ended")
      return
    }
    #expect(text.hasPrefix("H.264 configuration: "))
  }

  @Test func videoAndAudioComeByTheirFourCCs() throws {
    let driver = publishing(
      S.video([0x90] + Array("av01".utf8) + PublishedRecord.av1, 0)
        + S.audio([0x90] + Array("Opus".utf8) + PublishedRecord.opusHead, 0)
        // A packet of one 20 ms frame, and a temporal unit that is no key frame: only audio can begin.
        + (0..<120).flatMap { S.audio([0x91] + Array("Opus".utf8) + [0xFC, 1, 2, 3], $0 * 20) })
    #expect(driver.tracks.map { $0.map(\.codec.name) } == [["Opus"]])
    #expect(driver.times(.audio) == (0..<120).map { $0 * 960 })
    #expect(driver.samples.allSatisfy { $0.duration == 960 })
  }

  @Test func anUnfinishedMessageIsCountedAndFreedWithTheEnd() {
    var driver = publishing(S.headers + S.media(milliseconds: 1000))
    #expect(driver.session.heldBytes == 0)
    let half = S.video(S.avcFrame(key: true, size: 200_000), 1000).prefix(100_000)
    driver.feed(Array(half))
    #expect((98_000...100_000).contains(driver.session.heldBytes), "without the headers of its chunks")
    driver.refuse()
    #expect(driver.session.heldBytes == 0)
  }

  @Test func whatWaitsForTheStartIsCounted() {
    let driver = publishing(S.metadata() + S.headers + S.media(milliseconds: 1000, hasAudio: false))
    #expect(driver.events.isEmpty && driver.session.heldBytes > 25 * 20)
  }

  /// Nobody counts what a connection holds that has ended its publication.
  @Test func behindThePublicationLargeMessagesAreNotTaken() {
    var driver = publishing(S.headers + S.media(milliseconds: 1000))
    driver.feed(S.command([.string("deleteStream"), .number(7), .null, .number(1)], stream: 1))
    driver.feed(Array(S.video(S.avcFrame(key: true, size: 400_000), 1000).dropLast(1000)))
    #expect(driver.ending == .finished && driver.endings == [.failure])
    #expect(driver.session.heldBytes == 0)
  }

  @Test func partsOfAnAggregateMessageAreMedia() {
    func part(_ type: UInt8, _ time: UInt32, _ body: [UInt8]) -> [UInt8] {
      [type] + S.u24(UInt32(body.count)) + S.u24(time) + [0, 0, 0, 0] + body + S.u32(UInt32(body.count + 11))
    }
    let driver = publishing(
      S.metadata() + S.headers
        + S.message(
          22, part(9, 40, S.avcFrame(key: true)) + part(8, 40, S.aacFrame) + part(9, 80, S.avcFrame(key: false)),
          time: 1000))
    #expect(driver.times(.video) == [0, 1000])
    #expect(driver.times(.audio) == [0])
  }
}

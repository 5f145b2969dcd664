import Base
import FMP4
import NIOCore
@testable import Publishing
@testable import RTMP
import Support
import Testing

/// Media in other forms than FLV says. What is taken of them is the same as of the proper form.
@Suite("RTMP sessions: odd framing")
struct OddFramingTests {
  typealias S = RTMPScript

  private static let sets: [[UInt8]] = {
    let record = try? H264.Configuration(record: ByteBuffer(bytes: PublishedRecord.avc25))
    return (record?.sps ?? []) + (record?.pps ?? [])
  }()
  /// A message, and the two slices of frame `number`.
  private static let message: [UInt8] = [0x06, 0x05, 0x04, 1, 2, 3, 4, 0x80]
  private static func slices(_ number: UInt32) -> [[UInt8]] {
    [0x88, 0x08].map { [number % 25 == 0 ? 0x65 : 0x41, $0, UInt8(number), 7, 7, 7] }
  }

  private static func framed(_ units: [[UInt8]]) -> [UInt8] { units.flatMap { S.u32(UInt32($0.count)) + $0 } }
  private static func stream(_ units: [[UInt8]]) -> [UInt8] { units.flatMap { [0, 0, 0, 1] + $0 } }
  private static func tag(_ number: UInt32, _ payload: [UInt8]) -> [UInt8] {
    S.video([number % 25 == 0 ? 0x17 : 0x27, 1, 0, 0, 0] + payload, number * 40)
  }

  /// Three seconds, of which each frame of video is what `video` says, and each frame of audio what `audio` says. In pieces of
  /// seven bytes.
  private static func published(
    headers: [UInt8] = S.headers, audio: ([UInt8]) -> [UInt8] = { [0xAF, 1] + $0 },
    video: (UInt32, [[UInt8]]) -> [UInt8] = { tag($0, framed($1)) }
  ) -> SessionDriver {
    var bytes = S.metadata() + headers
    var heard: UInt32 = 0
    for number in 0..<75 as Range<UInt32> {
      bytes += video(number, (number == 0 ? [message] : []) + slices(number))
      while (heard * 64 + 1) / 3 < (number + 1) * 40 {
        bytes += S.audio(audio([0x21, 0x10, UInt8(heard), 4]), (heard * 64 + 1) / 3)
        heard += 1
      }
    }
    var driver = SessionDriver()
    driver.feed(S.opening())
    driver.feed(bytes + S.command([.string("deleteStream"), .number(7), .null, .number(1)], stream: 1), piece: 7)
    driver.tick(3_000_000_000)
    return driver
  }

  private static func samples(_ driver: SessionDriver, _ track: TrackID) -> [String] {
    driver.samples.filter { $0.track == track }.map {
      "\($0.decodeTime) \($0.isSync) \(Array($0.payload.readableBytesView))"
    }
  }

  private func isWhole(_ driver: SessionDriver, _ place: SourceLocation = #_sourceLocation) {
    let proper = Self.published()
    #expect(Self.samples(proper, .video).count == 75 && Self.samples(proper, .audio).count == 141)
    for track in [TrackID.video, .audio] {
      #expect(Self.samples(driver, track) == Self.samples(proper, track), sourceLocation: place)
    }
    #expect(driver.tracks == proper.tracks && driver.lost == 0 && driver.discontinuities == 0, sourceLocation: place)
    #expect(driver.warnings.isEmpty && driver.ending == .finished, sourceLocation: place)
  }

  @Test func aNALUnitInATagOfItsOwnIsPartOfItsFrame() {
    isWhole(
      Self.published(video: { number, units in units.flatMap { Self.tag(number, Self.framed([$0])) } }))
  }

  @Test func theLastFrameOfPiecesIsNotWaitedForLong() {
    var driver = SessionDriver()
    driver.feed(S.opening() + S.metadata(audio: false) + S.video(S.avcHeader(), 0))
    for number in 0..<3 as Range<UInt32> {
      driver.feed(Self.tag(number, Self.framed([Self.message])))
      for slice in Self.slices(number) { driver.feed(Self.tag(number, Self.framed([slice]))) }
    }
    #expect(driver.samples.count == 2)
    #expect(driver.session.deadline(after: 0) == .at(FLVFrames.patience))
    driver.tick(.at(FLVFrames.patience))
    #expect(driver.samples.count == 3 && driver.samples.allSatisfy { $0.payload.readableBytes == 32 })
  }

  @Test func slicesThatComeAloneLaterAreJoinedFromTheFirstKnownFrameOn() {
    let driver = Self.published(video: { number, units in
      number < 30 ? Self.tag(number, Self.framed(units)) : units.flatMap { Self.tag(number, Self.framed([$0])) }
    })
    // The second slice of the first such frame comes when that was passed on.
    #expect(Self.samples(driver, .video).count == 75 && driver.lost == 1)
    #expect(Self.samples(driver, .video).dropFirst(31) == Self.samples(Self.published(), .video).dropFirst(31))
  }

  @Test func aMessageInATagOfItsOwnBelongsToTheFrameBehindIt() {
    isWhole(
      Self.published(video: { number, units in
        Self.tag(number, Self.framed(units.filter { $0 == Self.message }))
          + Self.tag(number, Self.framed(units.filter { $0 != Self.message }))
      }))
    let driver = Self.published(video: { number, units in
      let frame = Self.tag(number, Self.framed(units))
      return number == 25 || number == 50 ? Self.tag(number, Self.framed([Self.message])) + frame : frame
    })
    let frames = driver.samples.filter { $0.track == .video }
    #expect(frames.count == 75 && frames.filter { $0.payload.readableBytes == 32 }.count == 3)
  }

  /// An end of sequence, and a slice of an auxiliary picture.
  @Test(arguments: [[0x0A], [0x13, 0x88, 7]] as [[UInt8]]) func whatFollowsAFrameInATagOfItsOwnIsNoFrame(
    _ rest: [UInt8]
  ) {
    let driver = Self.published(video: { number, units in
      Self.tag(number, Self.framed(units)) + Self.tag(number, Self.framed([rest]))
    })
    let frames = driver.samples.filter { $0.track == .video }
    #expect(frames.count == 75 && driver.lost == 0 && driver.warnings.isEmpty)
    // It is added to what waits for the start, and else left out.
    #expect(frames.first?.payload.readableBytes == 32 + 4 + rest.count)
    #expect(Self.samples(driver, .video).suffix(50) == Self.samples(Self.published(), .video).suffix(50))
  }

  @Test func whatHasNoSliceBelongsToTheFrameBeforeItUnlessTheNextHasBegun() {
    func tag(_ unit: [UInt8]) -> FLVFrames.Frame {
      FLVFrames.Frame(payload: ByteBuffer(bytes: Self.framed([unit])), time: 0, composition: 0, now: .zero)
    }
    var (frames, late): (FLVFrames, [FLVFrames.Late]) = (FLVFrames(.hevc), [])
    var whole = frames.receive(tag([0x26, 1, 0xAF, 1]), late: &late)
    #expect(whole.count == 1 && late.isEmpty)
    // A message behind the slices, and ends of the sequence and of the stream. Filler is not kept.
    let rest: [[UInt8]] = [[0x50, 1, 0x84, 1, 7], [0x48, 1], [0x4A, 1]]
    for unit in rest + [[0x4C, 1, 0xFF]] { whole += frames.receive(tag(unit), late: &late) }
    #expect(whole.count == 1 && late.allSatisfy { !$0.hasSlice })
    #expect(late.map(\.units) == rest.map { tag($0).payload } + [ByteBuffer()])

    (frames, late) = (FLVFrames(.h264), [])
    let units: [[UInt8]] = [Self.sets[0], [0x6D, 0x88, 0x80], [0x65, 0x88, 7]]
    for unit in units { _ = frames.receive(tag(unit), late: &late) }
    let frame = frames.finish()
    #expect(frame?.payload == ByteBuffer(bytes: Self.framed(units)) && late.isEmpty)
  }

  @Test func startCodesInPlaceOfLengthsAreTaken() {
    isWhole(Self.published(video: { Self.tag($0, Self.stream($1)) }))
    // The sequence header, too; and parameter sets and delimiters before key frames.
    let headers = S.video([0x17, 0, 0, 0, 0] + Self.stream(Self.sets), 0) + S.audio(S.aacHeader(), 0)
    isWhole(
      Self.published(
        headers: headers,
        video: { number, units in
          Self.tag(number, Self.stream([[9, 0xF0]] + (number % 25 == 0 ? Self.sets : []) + units))
        }))
  }

  @Test func startCodesWithinAUnitAndBytesBehindAFrameAreTaken() {
    isWhole(
      Self.published(video: { number, units in
        Self.tag(number, Self.framed([units[0] + Self.stream(Array(units.dropFirst()))]))
      }))
    for rest in [[0], [0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF, 0xFF], [0, 0, 0, 9, 1]] as [[UInt8]] {
      isWhole(Self.published(video: { Self.tag($0, Self.framed($1) + rest) }))
    }
  }

  @Test func parameterSetsInKeyFramesAloneAreTaken() {
    // An empty sequence header states nothing.
    for header in [[], S.video([0x17, 0, 0, 0, 0], 0)] as [[UInt8]] {
      isWhole(
        Self.published(
          headers: header + S.audio(S.aacHeader(), 0),
          video: { number, units in Self.tag(number, Self.framed((number % 25 == 0 ? Self.sets : []) + units)) }))
    }
  }

  @Test func whatIsToldOfATagWithoutANALUnitIsTakenBackWithTheNextFrame() {
    var driver = SessionDriver()
    driver.feed(S.opening() + S.metadata(audio: false))
    for number in 0..<5 as Range<UInt32> {
      driver.now = .at(Int64(number) * 40_000_000)
      let sets = number == 0 ? Self.sets : []
      driver.feed(Self.tag(number, number == 3 ? [0x7F, 0, 0, 5, 1, 2] : Self.framed(sets + Self.slices(number))))
      #expect(driver.warnings.count == (number == 3 ? 1 : 0), "\(number)")
    }
    #expect(driver.lost == 1 && driver.times(.video).count == 4)
  }

  @Test func whatHasNoConfigurationAtAllIsNamed() {
    let driver = Self.published(headers: S.audio(S.aacHeader(), 0))
    #expect(
      driver.warnings == [
        .unreadable(.video, "H.264 came without its parameter sets, in no sequence header and no frame")
      ])
    #expect(driver.tracks.map { $0.map(\.id) } == [[.audio]] && driver.lost == 75)
  }

  @Test func itIsNamedWithoutAudioTooAndTakenBackWithAConfiguration() {
    var driver = SessionDriver()
    driver.feed(S.opening() + S.metadata(audio: false))
    for number in 0..<60 as Range<UInt32> {
      driver.now = .at(Int64(number) * 40_000_000)
      driver.feed(Self.tag(number, Self.framed(Self.slices(number))))
      #expect(driver.warnings.isEmpty == (number < 50), "\(number)")
    }
    driver.now = 3_000_000_000
    driver.feed(S.video(S.avcHeader(), 2400) + Self.tag(75, Self.framed(Self.slices(75))))
    #expect(driver.warnings.isEmpty && driver.times(.video).count == 1)
  }

  /// The header of ADTS of AAC-LC, 48 kHz, stereo.
  private static func adts(_ frame: [UInt8]) -> [UInt8] {
    let size = frame.count + 7
    let header: [UInt8] = [0xFF, 0xF1, 0x4C, 0x80 | UInt8(size >> 11), UInt8(size >> 3 & 255)]
    return header + [UInt8(size & 7) << 5 | 0x1F, 0xFC] + frame
  }

  @Test func audioWithADTSIsTakenWithoutItsHeaders() {
    isWhole(Self.published(audio: { [0xAF, 1] + Self.adts($0) }))
    isWhole(Self.published(audio: { [0xAF, 1] + Self.adts($0) + [0] }))
    let header = S.video(S.avcHeader(), 0)
    // Its configuration is that of its frames; or a frame is in place of the sequence header.
    isWhole(Self.published(headers: header, audio: { [0xAF, 1] + Self.adts($0) }))
    isWhole(Self.published(headers: header + S.audio([0xAF, 0] + Self.adts([1]), 0)))
  }

  @Test func whatIsToldOfAFrameWithADTSThatIsCutOffIsTakenBackWithTheNextOne() {
    var driver = SessionDriver()
    driver.feed(S.opening() + S.metadata(video: false) + S.audio(S.aacHeader(), 0))
    let frame = Self.adts([0x21, 0x10, 1, 4])
    driver.feed(S.audio([0xAF, 1] + frame, 0) + S.audio([0xAF, 1] + frame.dropLast(2), 21))
    #expect(driver.warnings.count == 1 && driver.lost == 1)
    driver.feed(S.audio([0xAF, 1] + frame, 43))
    #expect(driver.warnings.isEmpty && driver.times(.audio).count == 2)
  }

  @Test func ofMoreFramesThanATagMayHaveTheFirstAreTaken() {
    let many = 0..<PublicationLimits.audioFrames + 40
    let adts = many.flatMap { _ in Self.adts([0x21, 0x10, 1, 4]) }
    let mp3 = many.flatMap { _ in [0xFF, 0xFB, 0x94, 0x64] + [UInt8](repeating: 1, count: 380) }
    for tag in [[0xAF, 1] + adts, [0x2F] + mp3] {
      var driver = SessionDriver()
      driver.feed(S.opening() + S.metadata(video: false) + S.audio(tag, 0) + S.audio(tag, 3000))
      driver.takeRest()
      #expect(driver.times(.audio).count == 2 * PublicationLimits.audioFrames && driver.lost == 2)
      #expect(driver.logs.count { $0.contains("are dropped") } == 1, "\(driver.logs)")
    }
  }

  @Test func severalFramesWithADTSInATagFollowEachOther() {
    isWhole(
      Self.published(audio: { frame in
        let (number, isLast) = (frame[2], frame[2] == 140)
        if number % 2 == 1 { return [] }
        return [0xAF, 1] + Self.adts(frame) + (isLast ? [] : Self.adts([0x21, 0x10, number + 1, 4]))
      }))
  }
}

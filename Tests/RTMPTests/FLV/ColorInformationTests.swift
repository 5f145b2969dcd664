import FMP4
import NIOCore
@testable import RTMP
import Testing

@Suite("Colours beside the bitstream")
struct ColorInformationTests {
  /// What ffmpeg 9.0 sends for BT.2020 with PQ, behind the tag's header.
  private static let ffmpeg = RTMPScript.hex(
    "020009636f6c6f72496e666f03000b636f6c6f72436f6e666967030017"
      + "7472616e736665724368617261637465726973746963730040300000000000000012"
      + "6d6174726978436f656666696369656e7473004022000000000000000e"
      + "636f6c6f725072696d6172696573004022000000000000000009000009")

  private func message(_ properties: [AMFValue.Property]) -> [UInt8] {
    RTMPScript.amf([.string("colorInfo"), .object(properties)])
  }

  private func read(_ bytes: [UInt8]) -> VideoColor?? { ColorInformation.read(ByteBuffer(bytes: bytes)) }

  @Test func whatFFmpegSendsIsRead() {
    let pq = ColorDescription(primaries: 9, transfer: 16, matrix: 9, range: .limited)
    #expect(read(Self.ffmpeg) == .some(VideoColor(description: pq)))
  }

  @Test func aMessageCutShortSaysNothing() {
    for length in 0..<Self.ffmpeg.count { #expect(read(Array(Self.ffmpeg.prefix(length))) == nil) }
  }

  @Test func masteringDisplayAndLightLevelsComeInTheUnitsOfTheirBoxes() {
    let primaries: [(String, Double)] = [
      ("redX", 0.68), ("redY", 0.32), ("greenX", 0.265), ("greenY", 0.69), ("blueX", 0.15), ("blueY", 0.06),
      ("whitePointX", 0.3127), ("whitePointY", 0.329), ("maxLuminance", 1000), ("minLuminance", 0.0001),
    ]
    let bytes = message([
      .init(name: "hdrMdcv", value: .object(primaries.map { .init(name: $0.0, value: .number($0.1)) })),
      .init(name: "hdrCll", value: .object(["maxFall": .number(400), "maxCLL": .number(1000)])),
    ])
    let expected = VideoColor(
      masteringDisplay: MasteringDisplay(
        red: .init(x: 34_000, y: 16_000), green: .init(x: 13_250, y: 34_500), blue: .init(x: 7_500, y: 3_000),
        white: .init(x: 15_635, y: 16_450), maximumLuminance: 10_000_000, minimumLuminance: 1),
      lightLevel: ContentLightLevel(maximum: 1000, maximumAverage: 400))
    #expect(read(bytes) == .some(expected))
  }

  @Test func anEmptyMessageTakesBackWhatWasStated() {
    #expect(read(message([])) == .some(nil))
    #expect(read(RTMPScript.amf([.string("colorInfo"), .undefined])) == .some(nil))
    #expect(read(RTMPScript.amf([.string("another"), .null])) == nil)
  }

  @Test(arguments: [-1, .nan, .infinity, 1e300, 70_000] as [Double])
  func valuesBeyondTheirRangeAreBounded(_ value: Double) {
    let bytes = message([
      .init(name: "colorConfig", value: .object(["colorPrimaries": .number(value)])),
      .init(name: "hdrCll", value: .object(["maxFall": .number(value), "maxCLL": .number(value)])),
    ])
    let bounded: UInt16 = value > 0 ? .max : 0
    let level = ContentLightLevel(maximum: bounded, maximumAverage: bounded)
    #expect(read(bytes) == .some(VideoColor(lightLevel: level)))
  }

  @Test func aMessageBeyondItsLimitIsNotLookedAt() {
    let text = String(repeating: "x", count: ColorInformation.maximumSize)
    #expect(read(message([.init(name: "colorConfig", value: .string(text))])) == nil)
  }

  private func publishing(_ bytes: [UInt8]) -> SessionDriver {
    var driver = SessionDriver()
    driver.feed(RTMPScript.opening() + RTMPScript.metadata(audio: false) + bytes)
    return driver
  }

  private func frame(_ time: UInt32, key: Bool = false) -> [UInt8] {
    RTMPScript.video(RTMPScript.avcFrame(key: key), time)
  }

  private let color = RTMPScript.video([0xD4] + Array("avc1".utf8) + Self.ffmpeg, 0)

  @Test func theTrackSaysWhatTheParameterSetsDoNot() throws {
    let header = RTMPScript.video(RTMPScript.avcHeader(), 0)
    for bytes in [header + color + frame(0, key: true), color + header + frame(0, key: true)] {
      let driver = publishing(bytes)
      let track = try #require(driver.tracks.first?.first)
      #expect(track.codec.videoFormat?.color == nil)
      #expect(track.color == ColorDescription(primaries: 9, transfer: 16, matrix: 9, range: .limited))
    }
  }

  @Test func coloursThatChangeInMidStreamCountFromTheNextKeyFrame() throws {
    let driver = publishing(
      RTMPScript.video(RTMPScript.avcHeader(), 0) + frame(0, key: true) + frame(40) + color + frame(80) + color
        + frame(120, key: true) + frame(160) + color + frame(200, key: true))
    #expect(driver.tracks.map { $0.first?.color?.transfer } == [nil, 16])
    let place = driver.events.lastIndex {
      if case .tracks = $0 { return true }
      return false
    }
    let before = driver.events.prefix(try #require(place)).count {
      if case .sample = $0 { return true }
      return false
    }
    #expect(before == 3)
    #expect(driver.samples.count == 6)
  }
}

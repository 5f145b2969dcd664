import FMP4
import NIOCore
@testable import RTMP
import Support
import Testing

/// Encoders of the field send empty and broken descriptions beside media that are well.
@Suite("RTMP sessions: rubbish that ends nothing")
struct HarmlessRubbishTests {
  typealias S = RTMPScript

  private func publishing(_ bytes: [UInt8]) -> SessionDriver {
    var driver = SessionDriver()
    driver.feed(S.opening() + bytes)
    return driver
  }

  private static let emptyHeaders: [[UInt8]] = [
    S.video([0x17, 0, 0, 0, 0], 0), S.video([0x1C, 0, 0, 0, 0], 0), S.video([0x90] + Array("hvc1".utf8), 0),
    S.audio([0xAF, 0], 0), S.audio([0x90] + Array("mp4a".utf8), 0), S.audio([0x90] + Array("Opus".utf8), 0),
  ]

  @Test(arguments: emptyHeaders) func `An empty configuration in front is passed over with a line`(_ empty: [UInt8]) {
    let driver = publishing(S.metadata() + empty + S.headers + S.media(milliseconds: 2000))
    #expect(driver.ending == nil && driver.endings.isEmpty)
    #expect(driver.tracks.map { $0.map(\.codec.name) } == [["H.264", "AAC"]])
    #expect(driver.times(.video).count == 50 && driver.lost == 0 && driver.warnings.isEmpty)
    #expect(driver.logs.count == 1 && driver.logs.last?.contains("is passed over: it is empty") == true)
  }

  @Test func `Configurations that are broken later leave those before them`() {
    let broken =
      Self.emptyHeaders + [
        S.video([0x17, 0, 0, 0, 0, 1, 0x64], 1000),
        S.video([0x17, 0, 0, 0, 0] + PublishedRecord.avc25.dropFirst(), 1000),
        S.audio([0xAF, 0, 0xFF], 1000),
      ]
    for header in broken {
      let bytes =
        S.metadata() + S.headers + S.media(milliseconds: 1000) + header + S.media(from: 1000, milliseconds: 1000)
      let driver = publishing(bytes)
      #expect(driver.ending == nil && driver.endings.isEmpty && driver.tracks.count == 1)
      #expect(driver.times(.video).count == 50 && driver.discontinuities == 0)
      #expect(driver.times(.audio).count > 90 && driver.warnings.isEmpty)
      #expect(driver.logs.count == 1, "\(driver.logs)")
    }
  }

  @Test func `A new configuration behind a broken one is taken`() {
    let bytes =
      S.metadata() + S.headers + S.media(milliseconds: 1000) + S.video([0x17, 0, 0, 0, 0, 1], 1000)
      + S.video(S.avcHeader(PublishedRecord.avc2997), 1000) + S.media(from: 1000, milliseconds: 1000)
    let driver = publishing(bytes)
    #expect(driver.ending == nil && driver.tracks.count == 2)
  }

  @Test func `An empty configuration takes up no audio that is left out`() {
    let bytes =
      S.metadata() + S.headers + S.media(milliseconds: 1000) + S.audio([0xAF, 0, 0x0A, 0x10], 1000)
      + S.audio([0xAF, 0], 1000) + S.media(from: 1000, milliseconds: 1000)
    let driver = publishing(bytes)
    #expect(driver.times(.video).count == 50 && driver.times(.audio).count < 50)
    let sent = publishing(
      S.metadata() + S.headers + S.media(milliseconds: 1000) + S.media(from: 1000, milliseconds: 1000))
    #expect(driver.warnings.count == 1)
    #expect(driver.lost > 0 && driver.times(.audio).count + driver.lost == sent.times(.audio).count)
  }

  // MARK: Metadata

  private static let metadata = S.amf([
    .string("@setDataFrame"), .string("onMetaData"),
    .ecmaArray([
      .init(name: "encoder", value: .string("script 1")), .init(name: "videocodecid", value: .number(7)),
      .init(name: "framerate", value: .number(25)), .init(name: "audiocodecid", value: .number(10)),
    ]),
  ])

  @Test func `Metadata with an end marker too many count, and a line says so`() {
    let data = S.message(18, Self.metadata + [0, 0, 9])
    var driver = publishing(data + data + S.headers + S.media(milliseconds: 200))
    #expect(driver.ending == nil && driver.times(.video).count == 5 && driver.session.encoder == "script 1")
    #expect(driver.logs.count == 1)
    // Audio was announced: it is waited for.
    driver = publishing(data + S.video(S.avcHeader(), 0) + S.video(S.avcFrame(key: true), 0))
    driver.tick(600_000_000)
    #expect(driver.samples.isEmpty)
  }

  @Test func `Metadata that are cut off anywhere end nothing`() {
    for length in 1..<Self.metadata.count {
      let driver = publishing(
        S.message(18, Array(Self.metadata.prefix(length))) + S.headers + S.media(milliseconds: 100))
      #expect(driver.ending == nil && driver.times(.video).count == 3, "\(length)")
    }
  }

  @Test func `What metadata name before they are cut off counts, and what they do not name may be there`() {
    let cut = Array(Self.metadata.dropLast(20))
    var driver = publishing(S.message(18, cut) + S.video(S.avcHeader(), 0) + S.video(S.avcFrame(key: true), 0))
    #expect(driver.session.encoder == "script 1" && driver.samples.isEmpty)
    driver.tick(500_000_000)
    #expect(driver.times(.video) == [0] && driver.warnings.isEmpty)
  }

  @Test func `Data that are no AMF end nothing`() {
    for bytes in [Array("{\"a\": 1}".utf8), [], [0xFF], [UInt8](repeating: 0x0A, count: 60_000)] as [[UInt8]] {
      for type: UInt8 in [15, 18] {
        let driver = publishing(S.message(type, bytes) + S.headers + S.media(milliseconds: 100))
        #expect(driver.ending == nil && driver.times(.video).count == 3)
      }
    }
  }
}

import FMP4
import NIOCore
@testable import RTMP
import Support
import Testing

@Suite("Hostile RTMP peers")
struct HostileRTMPTests {
  typealias S = RTMPScript

  /// What a publisher says before it publishes, and while it does: each is damaged in turn.
  private static let opening = [
    S.connect(), S.command([.string("_checkbw"), .number(9), .null]), S.createStream, S.publish("cam?key=x"),
    S.message(17, [0] + S.amf([.string("x"), .number(3), .null]), stream: 0, chunkStream: 3),
    [3] + S.c2.prefix(40),
  ]
  private static let media = [
    S.metadata(rate: 25), S.message(1, S.u32(4096), stream: 0, chunkStream: 2),
    S.message(5, S.u32(1000), stream: 0, chunkStream: 2), S.video(S.avcHeader(PublishedRecord.avc2997), 1000),
    S.audio(S.aacHeader(PublishedRecord.aac44), 1000), S.video(S.avcFrame(key: true, composition: 80), 1000),
    S.video(S.avcFrame(key: false), 0xFF_FFFF), S.audio(S.aacFrame, 0xFFFF_FFF0),
    S.video([0x90] + Array("av01".utf8) + PublishedRecord.av1, 0),
    S.video([0x97, 2, 0, 0, 9, 1] + Array("hvc1".utf8) + [0, 0, 1, 7], 5),
    S.audio([0x90] + Array("Opus".utf8) + PublishedRecord.opusHead, 0),
    S.audio([0x91] + Array("Opus".utf8) + [0xFC, 1, 2], 5),
    S.message(22, [9, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0x27, 1, 0, 0, 0, 0, 0, 0, 16], time: 0xFFFF_FFF0),
    S.message(4, [0, 6, 1, 2, 3, 4], stream: 0, chunkStream: 2), S.message(2, S.u32(6), stream: 0, chunkStream: 2),
    S.message(15, [0] + S.amf([.string("onMetaData")]) + [0x11, 0x0A, 0x0B, 1, 3, 0x61, 9, 5, 3, 0x61, 1, 1, 2, 3, 1]),
    S.command([.string("deleteStream"), .number(0), .null]),
  ]

  /// A session past its handshake, which costs most of the time and has its own tests.
  private static let begun: SessionDriver = {
    var driver = SessionDriver()
    driver.feed(S.handshake)
    return driver
  }()
  /// A session in the midst of its publication.
  private static let publishing: SessionDriver = {
    var driver = begun
    driver.feed(S.connect() + S.createStream + S.publish() + S.metadata() + S.headers + S.media(milliseconds: 100))
    driver.events = []
    return driver
  }()

  @Test func aHundredThousandDamagedMessagesTrapNothing() {
    var random = SplitMix(state: 20_261_121)
    var failures = 0
    var events = 0
    var driver = Self.begun
    for round in 0..<100_000 {
      // Damage adds up over some messages, then a session begins anew.
      let isOpening = round / 8 % 4 == 0
      if round % 8 == 0 { driver = isOpening ? Self.begun : Self.publishing }
      let messages = isOpening ? Self.opening : Self.media
      var bytes = messages[Int(random.next() % UInt64(messages.count))]
      let at = Int(random.next() % UInt64(bytes.count))
      switch random.next() % 8 {
      case 0: bytes[at] ^= 1 << UInt8(random.next() % 8)
      case 1: bytes[at] = UInt8(truncatingIfNeeded: random.next())
      case 2: bytes[at] = 0xFF
      case 3: bytes.removeSubrange(at..<min(bytes.count, at + Int(random.next() % 16)))
      case 4: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 8)], at: at)
      case 5: bytes.removeLast(min(bytes.count, Int(random.next() % 16)))
      default: break
      }
      driver.feed(bytes)
      if round % 8 == 7 {
        driver.tick(.at(Int64(random.next() % 5_000_000_000)))
        failures += driver.endings.count
        events += driver.events.count
      }
    }
    // The damage was felt, and not everywhere.
    #expect(failures > 1000)
    #expect(events > 10_000)
  }

  @Test func randomBytesTrapNothing() {
    var random = SplitMix(state: 5)
    for _ in 0..<1000 {
      var driver = random.next() % 2 == 0 ? Self.begun : Self.publishing
      driver.feed((0..<Int(random.next() % 400)).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    }
  }

  @Test func nothingIsReadAfterTheEnd() {
    var driver = Self.publishing
    driver.feed(S.message(1, S.u32(0), stream: 0, chunkStream: 2))
    #expect(driver.endings == [.failure])
    driver.feed(S.headers + S.media(milliseconds: 1000))
    #expect(driver.samples.isEmpty)
    #expect(driver.endings.count == 1)
    #expect(driver.ending == .failed("chunk size 0; it is 1 to 2147483647"))
  }

  @Test func depthOfSeventyThousandIsAProtocolError() {
    var driver = Self.begun
    let deep = [UInt8](repeating: 0x0A, count: 60_000)
    driver.feed(S.message(20, S.amf([.string("connect"), .number(1)]) + deep, stream: 0, chunkStream: 3))
    #expect(driver.endings == [.failure])
  }
}

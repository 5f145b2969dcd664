@testable import FMP4
@testable import LibAV
import NIOCore
import Testing
@testable import Transcode

@Suite struct TranscodeMessageTests {
  private let requests: [TranscodeRequest] = [
    .configure(
      TranscodeConfiguration(
        codec: .hevc, record: [1, 2, 3], timescale: 30_000, frameDuration: 1001, color: [1, 16, 9],
        rungs: [
          TranscodeConfiguration.Rung(width: 1280, height: 720, bitRate: 3_000_000),
          TranscodeConfiguration.Rung(width: 640, height: 360, bitRate: 800_000, preset: .slow),
        ])),
    .frame(
      TranscodeRequest.SourceFrame(
        presentationTime: 2002, decodeTime: -1001, isSync: true, lateness: 1234, payload: ByteBuffer(bytes: 0..<200))),
    .configureAudio(
      AudioTranscodeConfiguration(
        codec: .opus, record: [4, 5], timescale: 48_000, coding: .aac, sampleRate: 48_000, channels: 2,
        bitRate: 160_000)),
    .drain,
    .still(
      StillImageRequest(
        codec: .av1, record: [6, 7, 8], width: 1920, height: 1080, rotation: .clockwise270,
        sample: ByteBuffer(bytes: 0..<150))),
  ]

  private let replies: [TranscodeReply] = [
    .track(rung: 1, record: ByteBuffer(bytes: [9, 8, 7])),
    .frame(
      TranscodeReply.RungFrame(
        rung: 1, presentationTime: 90_000, isSync: false, payload: ByteBuffer(bytes: 0..<100))),
    .consumed(frames: 3, dropped: 2), .drained, .failed("no decoder"),
    .still(ByteBuffer(bytes: [0xFF, 0xD8, 0xFF])),
  ]

  private func frames(_ bytes: ByteBuffer, step: Int) throws -> [(type: UInt8, body: ByteBuffer)] {
    var reader = TranscodeFrameReader()
    var found: [(type: UInt8, body: ByteBuffer)] = []
    var rest = bytes
    while rest.readableBytes > 0 {
      let piece = rest.readSlice(length: min(step, rest.readableBytes)) ?? ByteBuffer()
      piece.withUnsafeReadableBytes { reader.append($0) }
      while let frame = try reader.next() { found.append(frame) }
    }
    return found
  }

  @Test(arguments: [1, 7, 100_000])
  func requestsAreReadAsTheyWereWritten(step: Int) throws {
    var wire = ByteBuffer()
    for request in requests { wire.writeImmutableBuffer(TranscodeWire.encode(request)) }
    let read = try frames(wire, step: step).map { try TranscodeWire.request($0.type, $0.body) }
    #expect(read == requests)
  }

  @Test(arguments: [1, 7, 100_000])
  func repliesAreReadAsTheyWereWritten(step: Int) throws {
    var wire = ByteBuffer()
    for reply in replies { wire.writeImmutableBuffer(TranscodeWire.encode(reply)) }
    let read = try frames(wire, step: step).map { try TranscodeWire.reply($0.type, $0.body) }
    #expect(read == replies)
  }

  @Test func aMessageOfTheLimitIsWaitedForAndOneByteMoreIsRefused() throws {
    for (length, isTaken) in [
      (TranscodeLimits.messageBytes, true), (TranscodeLimits.messageBytes + 1, false), (0, false),
    ] {
      var reader = TranscodeFrameReader()
      let head = ByteBuffer(integer: UInt32(length))
      head.withUnsafeReadableBytes { reader.append($0) }
      if isTaken {
        #expect(try reader.next() == nil)
      } else {
        #expect(throws: TranscodeProtocolError.self) { _ = try reader.next() }
      }
    }
  }

  @Test func aStillImageIsReadOnlyWithAllThatStandsBeforeItsSample() throws {
    let still = try #require(requests.last)
    let whole = try #require(try frames(TranscodeWire.encode(still), step: 1000).first)
    // Codec, sides, rotation, the record and its length.
    for length in 0..<14 {
      let short = ByteBuffer(bytes: whole.body.readableBytesView.prefix(length))
      #expect(throws: TranscodeProtocolError.self) { _ = try TranscodeWire.request(whole.type, short) }
    }
    // A codec and a rotation that there are not, and a record beyond the message and beyond its limit.
    for (place, bytes) in [
      (0, [255]), (5, [0, 92]), (7, [0, 0, 0, 200]), (7, [0, 1, 0, 1]), (7, [255, 255, 255, 255]),
    ] as [(Int, [UInt8])] {
      var wrong = whole.body
      wrong.setBytes(bytes, at: place)
      #expect(throws: TranscodeProtocolError.self) { _ = try TranscodeWire.request(whole.type, wrong) }
    }
  }

  @Test func aJPEGOfTheLimitIsTakenAndOneByteMoreIsRefused() throws {
    let type = try #require(try frames(TranscodeWire.encode(.still(ByteBuffer(bytes: [1]))), step: 100).first).type
    let largest = ByteBuffer(repeating: 1, count: TranscodeLimits.stillBytes)
    #expect(try TranscodeWire.reply(type, largest) == .still(largest))
    for count in [0, TranscodeLimits.stillBytes + 1] {
      #expect(throws: TranscodeProtocolError.self) {
        _ = try TranscodeWire.reply(type, ByteBuffer(repeating: 1, count: count))
      }
    }
  }

  @Test func theLargestKeyFrameFitsIntoAMessageWithTheLargestRecord() throws {
    let still = StillImageRequest(
      codec: .hevc, record: [UInt8](repeating: 1, count: TranscodeLimits.recordBytes), width: 2, height: 2,
      rotation: .none, sample: ByteBuffer(repeating: 2, count: TranscodeLimits.stillSampleBytes))
    #expect(TranscodeWire.encode(.still(still)).readableBytes - 4 <= TranscodeLimits.messageBytes)
  }

  @Test func whatIsCutShortIsRefused() throws {
    for reply in replies where reply != .drained {
      let whole = try #require(try frames(TranscodeWire.encode(reply), step: 1000).first)
      let short = ByteBuffer(bytes: whole.body.readableBytesView.prefix(0))
      if case .failed = reply { continue }
      #expect(throws: TranscodeProtocolError.self) { _ = try TranscodeWire.reply(whole.type, short) }
    }
    #expect(throws: TranscodeProtocolError.self) { _ = try TranscodeWire.reply(200, ByteBuffer()) }
    #expect(throws: TranscodeProtocolError.self) { _ = try TranscodeWire.request(200, ByteBuffer()) }
  }
}

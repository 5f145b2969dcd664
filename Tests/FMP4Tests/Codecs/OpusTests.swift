import FMP4
import NIOCore
import Support
import Testing

@Suite struct OpusTests {
  /// The headers that ffmpeg 5.1.9 wrote into Ogg files, and the `dOps` it wrote into MP4 files, of the same audio.
  @Test(arguments: [
    ("4f707573486561640102380180bb0000000000", RecordFixture.opusStereo, 2),
    ("4f707573486561640106380180bb00000000010402000401020305", RecordFixture.opusSurround, 6),
  ])
  func theHeaderBecomesTheRecordThatFFmpegWrote(_ head: String, _ record: [UInt8], _ channels: Int) throws {
    let configuration = try Opus.Configuration(record: ByteBuffer(bytes: RecordFixture.bytes(head)))
    #expect(configuration.boxed() == record)
    #expect(configuration.record() == RecordFixture.bytes(head))
    #expect(configuration.channels == channels)
    #expect(configuration.preSkip == 312)
    #expect(configuration.inputSampleRate == 48_000)
    #expect(configuration.codecString == "opus")
  }

  @Test func aPacketOfSilenceLasts20Milliseconds() throws {
    let silence = try #require(try Opus.Configuration(channels: 2, preSkip: 312).silence)
    #expect(Opus.packetDuration(silence) == 960)
    let surround = try Opus.Configuration(boxed: ByteBuffer(bytes: RecordFixture.opusSurround))
    #expect(surround.silence == nil)
  }

  @Test func oneStreamHasOneOrTwoChannels() throws {
    #expect(try Opus.Configuration(channels: 2, preSkip: 312).boxed() == RecordFixture.opusStereo)
    #expect(throws: CodecError.self) { try Opus.Configuration(channels: 0, preSkip: 312) }
    #expect(throws: CodecError.self) { try Opus.Configuration(channels: 3, preSkip: 312) }
  }

  /// RFC 6716 table 2 and §3.2.
  @Test(
    arguments: [
      ([0x00], 480), ([0x18], 2880), ([0x60], 480), ([0x68], 960), ([0x80], 120), ([0x98], 960), ([0xFC], 960),
      ([0xFD], 1920), ([0xFE], 1920), ([0xFF, 0x03], 2880), ([0xFF, 0x06], 5760), ([0xFF, 0x07], nil),
      ([0xFF, 0x00], nil), ([0xFF], nil), ([], nil), ([0x19], 5760),
    ] as [([UInt8], UInt32?)])
  func aPacketTellsItsDuration(_ packet: [UInt8], _ ticks: UInt32?) {
    #expect(Opus.packetDuration(ByteBuffer(bytes: packet)) == ticks)
  }

  @Test(arguments: [
    "4f707573486561641002380180bb0000000000",  // version 16
    "4f707573486561640103380180bb0000000000",  // three channels without a mapping
    "4f707573486561640102380180bb00000000ff",  // mapping family 255
    "4f707573486561640102380180bb0000000001010200 01",  // more coupled streams than streams
    "4f707573486561640102380180bb0000000001010000 01",  // a channel of a stream that is not there
  ])
  func whatCannotBeStoredIsRefused(_ head: String) {
    #expect(throws: CodecError.self) {
      try Opus.Configuration(record: ByteBuffer(bytes: RecordFixture.bytes(head)))
    }
  }
}

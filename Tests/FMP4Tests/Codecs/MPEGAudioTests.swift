import FMP4
import NIOCore
import Testing

/// Headers of MP1, MP2 and MP3, and the records of what outputs do not carry.
@Suite struct MPEGAudioTests {
  private func frame(_ bytes: UInt8...) -> MPEGAudio.Frame? { MPEGAudio.Frame(ByteBuffer(bytes: bytes)) }

  /// Lengths by ISO/IEC 11172-3 §2.4.3.1, as ffmpeg's encoders write them.
  @Test(
    arguments: [
      ([0xFF, 0xFD, 0xA4, 0x00], "MP2", 48_000, 2, 576, 1152), ([0xFF, 0xFB, 0x90, 0x64], "MP3", 44_100, 2, 417, 1152),
      ([0xFF, 0xFB, 0x92, 0x64], "MP3", 44_100, 2, 418, 1152), ([0xFF, 0xFA, 0x94, 0xC4], "MP3", 48_000, 1, 384, 1152),
      ([0xFF, 0xF3, 0x84, 0xC4], "MP3", 24_000, 1, 192, 576), ([0xFF, 0xE3, 0x18, 0xC4], "MP3", 8000, 1, 72, 576),
      ([0xFF, 0xF5, 0x80, 0x00], "MP2", 22_050, 2, 417, 1152), ([0xFF, 0xFF, 0xC4, 0x00], "MP1", 48_000, 2, 384, 384),
    ] as [([UInt8], String, UInt32, Int, Int, UInt32)])
  func `A header states layer, rate, channels and length`(
    _ bytes: [UInt8], _ name: String, _ rate: UInt32, _ channels: Int, _ length: Int, _ samples: UInt32
  ) throws {
    let frame = try #require(MPEGAudio.Frame(ByteBuffer(bytes: bytes)))
    let configuration = frame.configuration
    #expect(configuration.name == name && configuration.sampleRate == rate && configuration.channels == channels)
    #expect(frame.byteCount == length && configuration.samplesPerFrame == samples)
    let codec = try Codec(.mpegAudio, record: ByteBuffer(bytes: configuration.record()))
    #expect(codec == Codec(configuration) && !codec.id.isCarried)
  }

  @Test func `A frame lasts as long as its header says, if all of it is there`() throws {
    let head: [UInt8] = [0xFF, 0xFB, 0x90, 0x64]
    let record = try #require(MPEGAudio.Configuration.record(inFrame: ByteBuffer(bytes: head)))
    let codec = try Codec(.mpegAudio, record: ByteBuffer(bytes: record))
    #expect(codec.duration(of: ByteBuffer(bytes: head + [UInt8](repeating: 0, count: 413))) == 1152)
    #expect(codec.duration(of: ByteBuffer(bytes: head + [UInt8](repeating: 0, count: 412))) == nil)
    // Of another sampling rate.
    #expect(codec.duration(of: ByteBuffer(bytes: [0xFF, 0xFB, 0x94, 0x64] + [UInt8](repeating: 0, count: 413))) == nil)
  }

  @Test func `Reserved values are no header`() {
    #expect(frame(0xFF, 0xDB, 0x90, 0x64) == nil, "ten bits of sync")
    #expect(frame(0xFF, 0xEB, 0x90, 0x64) == nil, "reserved version")
    #expect(frame(0xFF, 0xF9, 0x90, 0x64) == nil, "reserved layer")
    #expect(frame(0xFF, 0xFB, 0xF0, 0x64) == nil, "bit rate 15")
    #expect(frame(0xFF, 0xFB, 0x9C, 0x64) == nil, "sampling rate 3")
    #expect(frame(0xFF, 0xFB, 0x90) == nil, "three bytes")
  }

  @Test func `Free format is refused by name`() throws {
    let free = try #require(frame(0xFF, 0xFB, 0x00, 0x64))
    let error = #expect(throws: CodecError.self) {
      try Codec(.mpegAudio, record: ByteBuffer(bytes: free.configuration.record()))
    }
    #expect(error?.reason == "MPEG audio in free format; state a bit rate" && error?.code == .unsupported)
  }

  @Test(arguments: [[], [0x64], [0x40], [0xC0], [0xCC]] as [[UInt8]])
  func `Records that no frame gives are refused`(_ record: [UInt8]) {
    #expect(throws: CodecError.self) { try Codec(.mpegAudio, record: ByteBuffer(bytes: record)) }
  }

  @Test func `G.711 has a byte for each sample of a channel, up to a second`() throws {
    let stereo = try Codec(.alaw, record: ByteBuffer(bytes: G711.record(sampleRate: 8000, channels: 2)))
    #expect(stereo.duration(of: ByteBuffer(repeating: 0, count: 320)) == 160)
    #expect(stereo.duration(of: ByteBuffer(repeating: 0, count: 16_000)) == 8000)
    #expect(stereo.duration(of: ByteBuffer(repeating: 0, count: 16_002)) == nil)
    #expect(stereo.duration(of: ByteBuffer()) == nil)
    #expect(stereo.name == "G.711 A-law" && !stereo.id.isCarried)
  }

  @Test(arguments: [(7999, 1), (48_001, 1), (8000, 0), (8000, 3)] as [(UInt32, UInt8)])
  func `Rates and channels that G.711 does not have are refused`(_ rate: UInt32, _ channels: UInt8) {
    let record = ByteBuffer(bytes: G711.record(sampleRate: rate, channels: channels))
    #expect(throws: CodecError.self) { try Codec(.mulaw, record: record) }
  }

  @Test func severalFramesOfAPayloadEachHaveTheirStart() {
    // 417 bytes and 1152 samples of 44.1 kHz.
    let frame = ByteBuffer(bytes: [0xFF, 0xFB, 0x90, 0x64] + [UInt8](repeating: 1, count: 413))
    var payload = ByteBuffer()
    for _ in 0..<3 { payload.writeImmutableBuffer(frame) }
    let frames = MPEGAudio.frames(in: payload, most: 3).frames
    #expect(frames.map(\.payload) == [frame, frame, frame])
    let two = MPEGAudio.frames(in: payload, most: 2)
    #expect(two.frames.map(\.payload) == [frame, frame] && two.hasMore)
    #expect(frames.map { ($0.start + 50_000) / 100_000 } == [0, 261, 522])
    // One that is cut off, and bytes that are none, stay as they are.
    for rest in [ByteBuffer(bytes: [0xFF, 0xFB, 0x90, 0x64, 1]), ByteBuffer(bytes: [1, 2, 3])] {
      var damaged = frame
      damaged.writeImmutableBuffer(rest)
      #expect(MPEGAudio.frames(in: damaged, most: 3).frames.map(\.payload) == [frame, rest])
      #expect(MPEGAudio.frames(in: rest, most: 3).frames.map(\.payload) == [rest])
    }
    let free = ByteBuffer(bytes: [0xFF, 0xFB, 0x00, 0x64] + [UInt8](repeating: 1, count: 400))
    #expect(MPEGAudio.frames(in: free, most: 3).frames.map(\.payload) == [free])
    #expect(MPEGAudio.frames(in: ByteBuffer(), most: 3).frames.isEmpty)
  }
}

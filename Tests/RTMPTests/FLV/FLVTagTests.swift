import Base
import FMP4
import NIOCore
@testable import RTMP
import Testing

@Suite("FLV and Enhanced RTMP tags")
struct FLVTagTests {
  private func video(_ bytes: [UInt8]) throws(WireError) -> FLVVideoTag { try FLVVideoTag(ByteBuffer(bytes: bytes)) }
  private func audio(_ bytes: [UInt8]) -> FLVAudioTag { FLVAudioTag(ByteBuffer(bytes: bytes)) }
  private func cc(_ text: String) -> [UInt8] { Array(text.utf8) }

  /// `coding configuration|frame composition bytes` of each track, to compare at a glance. The number of a track that is
  /// not the default one comes first.
  private func describe(_ tag: FLVVideoTag) -> String {
    describe(tag.tracks) { content in
      switch content {
      case .configuration(let coding, let bytes): "\(coding) configuration \(Array(bytes.readableBytesView))"
      case .frame(let coding, let bytes, let composition):
        "\(coding) frame \(composition) \(Array(bytes.readableBytesView))"
      case .metadata(let bytes): "metadata \(Array(bytes.readableBytesView))"
      }
    }
  }

  private func describe(_ tag: FLVAudioTag) -> String {
    describe(tag.tracks) { content in
      switch content {
      case .configuration(let coding, let bytes): "\(coding) configuration \(Array(bytes.readableBytesView))"
      case .frame(let coding, let bytes): "\(coding) frame \(Array(bytes.readableBytesView))"
      }
    }
  }

  private func describe<Content>(_ tracks: [FLVTrackContent<Content>], _ text: (Content) -> String) -> String {
    let texts = tracks.map { ($0.number == 0 ? "" : "\($0.number): ") + text($0.content) }
    return texts.isEmpty ? "nothing" : texts.joined(separator: ", ")
  }

  @Test func legacyVideoIsRead() throws {
    #expect(describe(try video([0x17, 0, 0, 0, 0, 1, 2])) == "h264 configuration [1, 2]")
    #expect(describe(try video([0x27, 1, 0, 0, 80, 9])) == "h264 frame 80 [9]")
    #expect(describe(try video([0x27, 1, 0xFF, 0xFF, 0xFE, 9])) == "h264 frame -2 [9]")
    #expect(describe(try video([0x27, 1, 0x80, 0, 0, 9])) == "h264 frame -8388608 [9]")
    #expect(describe(try video([0x1C, 1, 0, 0, 0, 9])) == "hevc frame 0 [9]")
    // End of sequence, empty tags, a command frame.
    for bytes in [[0x17, 2, 0, 0, 0], [], [0x17], [0x17, 1, 0, 0, 0], [0x57, 0]] as [[UInt8]] {
      #expect(describe(try video(bytes)) == "nothing")
    }
  }

  @Test func enhancedVideoIsRead() throws {
    #expect(describe(try video([0x90] + cc("hvc1") + [1, 2])) == "hevc configuration [1, 2]")
    #expect(describe(try video([0x91] + cc("hvc1") + [0, 0, 5, 7])) == "hevc frame 5 [7]")
    #expect(describe(try video([0xA1] + cc("avc1") + [0xFF, 0xFF, 0xFF, 7])) == "h264 frame -1 [7]")
    #expect(describe(try video([0xA1] + cc("av01") + [7])) == "av1 frame 0 [7]")
    #expect(describe(try video([0xA3] + cc("hvc1") + [7])) == "hevc frame 0 [7]")
    for bytes in [[0x92] + cc("hvc1"), [0x95] + cc("av01") + [1], [0xD1, 0], [0x91]] {
      #expect(describe(try video(bytes)) == "nothing")
    }
  }

  @Test func metadataOfTheVideoComesAsACommandToo() throws {
    #expect(describe(try video([0x94] + cc("hvc1") + [2, 0, 0])) == "metadata [2, 0, 0]")
    #expect(describe(try video([0xD4] + cc("av01") + [2])) == "metadata [2]")
  }

  @Test func modifiersAreReadAndUnknownOnesPassedOver() throws {
    // Nanosecond offset 0x01E240 = 123456, then coded frames.
    let tag = try video([0x97, 2, 0x01, 0xE2, 0x40, 0x01] + cc("av01") + [7])
    #expect(tag.nanoseconds == 123_456)
    #expect(describe(tag) == "av1 frame 0 [7]")
    // An unknown modifier of 256 bytes with a long size, then a second one.
    let long = [0x97, 255, 0, 255] + [UInt8](repeating: 0, count: 256) + [0x17] + [0, 9, 0x33] + cc("hvc1") + [7]
    #expect(describe(try video(long)) == "hevc frame 0 [7]")
    #expect(describe(try video([0x97, 200, 0])) == "nothing")
    #expect(describe(audio([0x97, 0, 0, 0x01] + cc("Opus") + [7])) == "opus frame [7]")
  }

  @Test func everyTrackOfAMessageIsRead() throws {
    #expect(describe(try video([0x96, 0x01] + cc("av01") + [0, 7])) == "av1 frame 0 [7]")
    #expect(describe(audio([0x95, 0x01] + cc("Opus") + [3, 7])) == "3: opus frame [7]")
    // Several of one codec, then several of several.
    let frames = try video([0x96, 0x11] + cc("av01") + [1, 0, 0, 1, 7] + [0, 0, 0, 2, 8, 9])
    #expect(describe(frames) == "1: av1 frame 0 [7], av1 frame 0 [8, 9]")
    #expect(frames.leftOut == nil)
    let configurations = audio([0x95, 0x20] + cc("fLaC") + [0, 0, 0, 1, 7] + cc("mp4a") + [1, 0, 0, 2, 8, 9])
    #expect(describe(configurations) == "1: aac configuration [8, 9]")
    #expect(configurations.leftOut == "FLAC")
    let sizes = cc("avc1") + [0, 0, 0, 4, 0, 0, 5, 7] + cc("hvc1") + [2, 0, 0, 5, 0, 0, 1, 8, 9]
    #expect(describe(try video([0x96, 0x21] + sizes)) == "h264 frame 5 [7], 2: hevc frame 1 [8, 9]")
    #expect(describe(try video([0x96, 0x14] + cc("hvc1") + [1, 0, 0, 1, 2])) == "1: metadata [2]")
  }

  /// The beginning of a frame of AC-3, stereo at 48 kHz and 64 kbit/s.
  private static let ac3: [UInt8] = [0x0B, 0x77, 0x44, 0x80, 0x08, 0x40, 0x43, 0xE1]

  @Test func aFrameOfAC3StatesItsConfiguration() {
    let tag = audio([0x91] + cc("ac-3") + Self.ac3)
    #expect(describe(tag) == "ac3 frame \(Self.ac3)" && tag.ownRecords == [0: ByteBuffer(bytes: [0x10, 0x10, 0x80])])
    #expect(describe(audio([0x90] + cc("ac-3"))) == "nothing" && audio([0x90] + cc("ec-3")).leftOut == nil)
    #expect(audio([0x91] + cc("ec-3") + [1]).ownRecords.isEmpty)
  }

  @Test func theDefaultTrackInAnotherCodecIsLeftOutWhereThereIsAFurtherOne() throws {
    let tag = try FLVVideoTag(ByteBuffer(bytes: [0x91] + cc("vp08") + [1]), hasFurther: true)
    #expect(describe(tag) == "nothing" && tag.leftOut == "vp08")
    #expect(audio([0x95, 0x01] + cc("fLaC") + [4, 9]).leftOut == "FLAC")
  }

  @Test func tracksThatAreCutOffAreNothing() throws {
    let whole = [0x96, 0x21] + cc("av01") + [0, 0, 0, 2, 8, 9]
    #expect(describe(try video(whole)) == "av1 frame 0 [8, 9]")
    for length in 0..<whole.count { #expect(describe(try video(Array(whole[..<length]))) == "nothing") }
    // An unknown layout, and more tracks than there are numbers.
    #expect(describe(try video([0x96, 0x31] + cc("av01") + [0, 7])) == "nothing")
    let many: [UInt8] = (0..<300).flatMap { number -> [UInt8] in [UInt8(truncatingIfNeeded: number), 0, 0, 1, 7] }
    #expect(try video([0x96, 0x11] + cc("av01") + many).tracks.map(\.number) == Array(0...255))
  }

  @Test func audioIsRead() throws {
    #expect(describe(audio([0xAF, 0, 0x11, 0x90])) == "aac configuration [17, 144]")
    #expect(describe(audio([0xAF, 1, 9])) == "aac frame [9]")
    #expect(describe(audio([0x90] + cc("Opus") + [1])) == "opus configuration [1]")
    #expect(describe(audio([0x91] + cc("mp4a") + [1])) == "aac frame [1]")
    for bytes in [[], [0xAF], [0xAF, 1], [0x92] + cc("Opus"), [0x94] + cc("Opus") + [0, 2], [0x20]] {
      #expect(describe(audio(bytes)) == "nothing")
    }
  }

  /// E.4.2.1: formats 2, 7, 8 and 14 have no configuration; the lowest bit is the number of channels, less one.
  @Test func `MP3 and G.711 are frames, with what they state themselves`() throws {
    let mp3: [UInt8] = [0xFF, 0xFB, 0x90, 0x64, 5]
    for bytes in [[0x2F] + mp3, [0xEE] + mp3, [0x91] + cc(".mp3") + mp3] {
      #expect(describe(audio(bytes)) == "mpegAudio frame \(mp3)")
      #expect(audio(bytes).ownRecords[0] == ByteBuffer(bytes: [0xF0]), "MPEG-1, layer III, 44.1 kHz")
    }
    #expect(describe(audio([0x90] + cc(".mp3") + [1])) == "nothing")
    for (bytes, coding, channels) in [
      ([0x72, 0xD5], CodecID.alaw, 1), ([0x83, 0xFF], .mulaw, 2), ([0x7F, 0xD5], .alaw, 2),
    ] as [([UInt8], CodecID, UInt8)] {
      #expect(describe(audio(bytes)) == "\(coding) frame [\(bytes[1])]")
      #expect(audio(bytes).ownRecords[0] == ByteBuffer(bytes: G711.record(sampleRate: 8000, channels: channels)))
    }
    for bytes: [UInt8] in [[0x2F], [0x72], [0x83]] { #expect(describe(audio(bytes)) == "nothing") }
    #expect(audio([0x2F, 1]).ownRecords.isEmpty, "no frame")
  }

  @Test func codecsThatAreNotCarriedAreNamed() {
    let expected: [([UInt8], String)] = [
      ([0x90] + cc("vp08") + [1], "vp08"), ([0x12, 1], "Sorenson H.263"), ([0x14, 1], "VP6"),
      ([0x91] + [0, 10, 200, 65], "???A"), ([0x1F, 1], "video codec 15"),
    ]
    for (bytes, name) in expected {
      #expect(
        throws: WireError(
          .unsupported,
          "codec \(name) unsupported; supported: H.264, HEVC, AV1, VP9, AAC, Opus, AC-3, E-AC-3, MPEG audio, G.711 A-law,"
            + " G.711 µ-law")
      ) {
        try video(bytes)
      }
    }
    // Audio is left out; the video goes on without it.
    let audioSamples: [([UInt8], String)] = [
      ([0xB2, 1], "Speex"), ([0x90] + cc("fLaC"), "FLAC"),
      ([0x91] + cc("abcd") + [1], "abcd"), ([0x91, 0, 10, 200, 65], "???A"),
    ]
    for (bytes, name) in audioSamples {
      let tag = audio(bytes)
      #expect(describe(tag) == "nothing")
      #expect(tag.leftOut == name)
    }
    // Of several frames, one that is not carried.
    #expect(throws: Never.self) {
      let tag = try video([0x96, 0x21] + cc("vp08") + [0, 0, 0, 1, 7] + cc("av01") + [1, 0, 0, 1, 8])
      #expect(describe(tag) == "1: av1 frame 0 [8]")
      #expect(tag.leftOut == "vp08")
    }
  }

  @Test func partsOfAnAggregateAreMessagesOfTheirOwn() throws {
    func part(_ type: UInt8, _ time: UInt32, _ body: [UInt8]) -> [UInt8] {
      [type] + RTMPScript.u24(UInt32(body.count)) + RTMPScript.u24(time & 0xFF_FFFF) + [UInt8(time >> 24), 0, 0, 0]
        + body + RTMPScript.u32(UInt32(body.count + 11))
    }
    let bytes = part(8, 0x0100_0000, [1]) + part(9, 0x0100_0028, [2, 3])
    func read(_ bytes: [UInt8]) throws -> [RTMPMessage] {
      var aggregate = AggregateMessage(
        RTMPMessage(type: 22, timestamp: 0xFFFF_FFF0, streamID: 1, payload: ByteBuffer(bytes: bytes)))
      var messages: [RTMPMessage] = []
      while let message = try aggregate.next() { messages.append(message) }
      return messages
    }
    let messages = try read(bytes)
    #expect(messages.map(\.timestamp) == [0xFFFF_FFF0, 0x18])
    #expect(messages.map(\.type) == [8, 9])
    #expect(messages.map { Array($0.payload.readableBytesView) } == [[1], [2, 3]])
    for count in 1..<bytes.count where ![12, 13, 14, 15, 16].contains(count) && count < bytes.count - 4 {
      #expect(throws: WireError.self) { try read(Array(bytes[..<count])) }
    }
    #expect(throws: WireError.self) { try read(part(22, 0, [1])) }
  }
}

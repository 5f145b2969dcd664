@testable import FMP4
import NIOCore
import Support
import Testing

/// Beginnings of key frames by libvpx, and the boxes that ffmpeg 5.1.9 (Debian 12) wrote for them. Its levels do not count the
/// frame rate, so they are lower.
@Suite struct VP9Tests {
  /// 640×360 BT.709, 1280×720 of 10 bits BT.2020, 322×182 4:4:4 of full range.
  private static let judged: [(frame: String, box: String, level: UInt8, text: String)] = [
    ("824983424027f016760638241c18", "010000000015820101010000", 30, "vp09.00.30.08"),
    ("924983425027f8167b031c120e0c", "01000000021fa20902090000", 40, "vp09.02.40.10.01.09.02.09.00"),
    ("a2498342100282016ac0c7048383", "01000000010b870202020000", 20, "vp09.01.20.08.03.01.01.01.01"),
  ]

  private static func configuration(_ frame: String) throws -> VP9.Configuration {
    try VP9.Configuration(stream: ByteBuffer(bytes: RecordFixture.bytes(frame)))
  }

  @Test func `A key frame states what ffmpeg writes into the box`() throws {
    let sizes = [(640, 360), (1280, 720), (322, 182)]
    for (judged, size) in zip(Self.judged, sizes) {
      let configuration = try Self.configuration(judged.frame)
      var expected = RecordFixture.bytes(judged.box)
      expected[5] = judged.level
      #expect((configuration.format.width, configuration.format.height) == size)
      #expect(configuration.codecString == judged.text)
      #expect(configuration.boxed() == expected, "\(judged.text)")
    }
  }

  @Test func `The box is read with the size of its sample entry`() throws {
    for judged in Self.judged {
      let configuration = try Self.configuration(judged.frame)
      let size = (width: UInt16(configuration.format.width), height: UInt16(configuration.format.height))
      let box = ByteBuffer(bytes: configuration.boxed())
      #expect(try VP9.Configuration(boxed: box, size: size) == configuration)
      #expect(throws: CodecError.self) { try VP9.Configuration(boxed: box, size: (0, 360)) }
      let track = TrackDescription(id: .video, codec: Codec(configuration), timescale: 90_000)
      let bytes = ByteBuffer.boxes(capacity: track.sampleEntryCapacity) { track.writeSampleEntry(&$0) }
      var reader = BoxReader(bytes)
      let found = reader.next()
      let entry = try #require(found)
      #expect(try Codec(sampleEntry: entry) == track.codec)
    }
  }

  @Test func `Only key frames begin, and another size is another configuration`() throws {
    let key = RecordFixture.bytes(Self.judged[0].frame)
    let configuration = try Self.configuration(Self.judged[0].frame)
    let unit = try VP9.accessUnit(ByteBuffer(bytes: key))
    #expect(unit.isSync && unit.payload == ByteBuffer(bytes: key))
    #expect(configuration.updated(withParameterSets: unit.parameterSets) == nil)
    let other = try VP9.accessUnit(ByteBuffer(bytes: RecordFixture.bytes("824983424013f00b360638241c18")))
    #expect(configuration.updated(withParameterSets: other.parameterSets)?.format.width == 320)
    // An inter frame, and one that shows a frame again.
    for bytes: [UInt8] in [[0x86, 0x00, 0x40, 0x92], [0x8A]] {
      let unit = try VP9.accessUnit(ByteBuffer(bytes: bytes))
      #expect(!unit.isSync && unit.parameterSets.isEmpty && !VP9.isKeyFrame(unit.payload))
      #expect(throws: CodecError.self) { try VP9.Configuration(stream: ByteBuffer(bytes: bytes)) }
    }
  }

  @Test func `A key frame cut short is no configuration, and changed bytes never trap`() throws {
    for judged in Self.judged {
      let whole = RecordFixture.bytes(judged.frame)
      for count in 0..<9 {
        #expect(throws: CodecError.self) { try VP9.Configuration(stream: ByteBuffer(bytes: whole.prefix(count))) }
      }
      for index in whole.indices {
        for bit in 0..<8 {
          var changed = whole
          changed[index] ^= 1 << UInt8(bit)
          guard let read = try? VP9.Configuration(stream: ByteBuffer(bytes: changed)) else { continue }
          #expect(!read.codecString.isEmpty && read.boxed().count == 12)
          let again = try? VP9.Configuration(record: ByteBuffer(bytes: read.record()))
          #expect(again == read)
        }
      }
    }
  }

  @Test func `A level is that of the size at 60 frames a second`() throws {
    for (width, height, level): (Int64, Int64, UInt8) in [
      (256, 144, 11), (1280, 720, 40), (1920, 1080, 41), (3840, 2160, 51), (16_384, 16_384, 62),
    ] {
      let box = ByteBuffer(bytes: [1, 0, 0, 0, 0, 0, 0x82, 1, 1, 1, 0, 0])
      #expect(try VP9.KeyFrameHeader(box: box, width: width, height: height).level == level, "\(width)")
    }
  }
}

import NIOCore
@testable import RTMP
import Testing

/// Headers of Enhanced RTMP v2, as its document has them: ModEx, Multitrack, FourCC.
@Suite struct FLVExtendedHeaderTests {
  private typealias Track = FLVExtendedHeader.Track

  private func read(
    _ packetType: UInt8, _ bytes: [UInt8], isCommand: Bool = false, isAudio: Bool = false
  ) -> (header: FLVExtendedHeader, tracks: [Track]) {
    var header = FLVExtendedHeader(
      packetType: packetType, isCommand: isCommand, isAudio: isAudio, ByteBuffer(bytes: bytes))
    var tracks: [Track] = []
    while let track = header.nextTrack() { tracks.append(track) }
    return (header, tracks)
  }

  private func texts(_ tracks: [Track]) -> [String] {
    tracks.map { "\($0.number) \($0.fourCC) \(Array($0.body.readableBytesView))" }
  }

  private func sized(_ number: UInt8, _ body: [UInt8]) -> [UInt8] { [number, 0, 0, UInt8(body.count)] + body }

  private static let avc = Array("avc1".utf8)
  private static let hevc = Array("hvc1".utf8)

  @Test func `A message of one track is its codec and its body`() {
    let (header, tracks) = read(1, Self.avc + [1, 2, 3])
    #expect(header.packetType == 1 && !header.isMultitrack && header.nanoseconds == 0)
    #expect(texts(tracks) == ["0 avc1 [1, 2, 3]"])
    #expect(texts(read(0, Self.avc).tracks) == ["0 avc1 []"])
    #expect(texts(read(1, [0x61, 0x0A, 0xC3, 0x31, 9]).tracks) == ["0 a??1 [9]"], "it stands in log lines")
  }

  @Test func `A header that is cut off has no track`() {
    for count in 0..<4 { #expect(read(1, Array(Self.avc.prefix(count))).tracks.isEmpty, "\(count)") }
  }

  // MARK: several tracks

  @Test func `One track that states its number takes the rest`() {
    let (header, tracks) = read(6, [0x01] + Self.avc + [7, 1, 2])
    #expect(header.isMultitrack && header.packetType == 1 && texts(tracks) == ["7 avc1 [1, 2]"])
    #expect(texts(read(5, [0x01] + Array("Opus".utf8) + [3, 9], isAudio: true).tracks) == ["3 Opus [9]"])
    // The numbers of the kinds differ: of audio 6 is no such message, of video 5 is none.
    #expect(!read(6, [0x01] + Self.avc, isAudio: true).header.isMultitrack)
    #expect(!read(5, [0x01] + Self.avc).header.isMultitrack)
  }

  @Test func `Several tracks of one codec have their sizes`() {
    let bytes = [0x13] + Self.avc + sized(0, [1]) + sized(1, []) + sized(9, [2, 3])
    let (header, tracks) = read(6, bytes)
    #expect(header.packetType == 3 && texts(tracks) == ["0 avc1 [1]", "1 avc1 []", "9 avc1 [2, 3]"])
  }

  @Test func `Several tracks of several codecs have codec and size each`() {
    let bytes = [0x21] + Self.avc + sized(0, [1]) + Self.hevc + sized(1, [2, 3])
    #expect(texts(read(6, bytes).tracks) == ["0 avc1 [1]", "1 hvc1 [2, 3]"])
  }

  @Test func `What is whole before the message is cut off counts`() {
    let first = [0x21] + Self.avc + sized(0, [1])
    let whole = first + Self.hevc + sized(1, [2, 3])
    for count in 0..<whole.count {
      let tracks = read(6, Array(whole.prefix(count))).tracks
      #expect(tracks.count == (count >= first.count ? 1 : 0), "\(count)")
    }
  }

  @Test func `Layouts that do not exist have no track`() {
    for layout in 3...15 as ClosedRange<UInt8> {
      #expect(read(6, [layout << 4 | 1] + Self.avc + sized(0, [1])).tracks.isEmpty, "\(layout)")
    }
  }

  @Test func `As many tracks are read as there are numbers`() {
    let bytes = [0x11] + Self.avc + (0..<300).flatMap { sized(UInt8($0 & 255), []) }
    #expect(read(6, bytes).tracks.count == 256)
  }

  // MARK: modifiers

  @Test func `Nanoseconds are taken of a modifier, and bounded`() {
    for (data, expected) in [
      ([0, 0, 0], 0), ([1, 0xE2, 0x40], 123_456), ([0x0F, 0x42, 0x3F], 999_999), ([0x0F, 0x42, 0x40], 999_999),
      ([255, 255, 255], 999_999),
    ] as [([UInt8], UInt32)] {
      let (header, tracks) = read(7, [2] + data + [0x01] + Self.avc + [5])
      #expect(header.packetType == 1 && header.nanoseconds == expected && texts(tracks) == ["0 avc1 [5]"])
    }
  }

  @Test func `Modifiers follow one another, and unknown ones are passed over`() {
    // An unknown kind of five bytes, then nanoseconds, then tracks.
    let bytes: [UInt8] = [4, 9, 9, 9, 9, 9, 0x17, 2, 0, 0, 7, 0x06, 0x01] + Self.avc + [4, 8]
    let (header, tracks) = read(7, bytes)
    #expect(header.nanoseconds == 7 && header.packetType == 1 && texts(tracks) == ["4 avc1 [8]"])
    #expect(read(7, [1, 0, 9, 0x01] + Self.avc).header.nanoseconds == 0, "too short for nanoseconds")
  }

  @Test func `A modifier of 256 bytes and more states its size in two bytes`() {
    for size in [256, 257, 65_536] {
      let data = [0, 0, 3] + [UInt8](repeating: 0, count: size - 3)
      let head: [UInt8] = [255, UInt8((size - 1) >> 8), UInt8((size - 1) & 255)]
      let (header, tracks) = read(7, head + data + [0x01] + Self.avc + [5])
      #expect(header.nanoseconds == 3 && texts(tracks) == ["0 avc1 [5]"], "\(size)")
    }
    #expect(read(7, [254, 0, 0, 3] + [UInt8](repeating: 0, count: 252) + [0x01] + Self.avc).tracks.count == 1)
  }

  @Test func `A message of nothing but modifiers ends`() {
    let bytes = (0..<5000).flatMap { _ in [0, 0, 0x17] as [UInt8] }
    #expect(read(7, bytes).tracks.isEmpty)
    for count in 0..<8 { #expect(read(7, Array(([2, 0, 0, 1, 0x01] + Self.avc).prefix(count))).tracks.isEmpty) }
  }

  @Test func `Of a command nothing but metadata is read`() {
    #expect(read(1, Self.avc + [1], isCommand: true).tracks.isEmpty)
    #expect(texts(read(4, Self.avc + [1], isCommand: true).tracks) == ["0 avc1 [1]"])
  }

  // MARK: numbers

  @Test func `A signed number has 24 bits`() {
    for (bytes, value) in [
      ([0, 0, 0], 0), ([0xFF, 0xFF, 0xFF], -1), ([0x7F, 0xFF, 0xFF], 8_388_607), ([0x80, 0, 0], -8_388_608),
    ] as [([UInt8], Int32)] {
      var buffer = ByteBuffer(bytes: bytes)
      #expect(buffer.readI24() == value && buffer.readableBytes == 0)
    }
    var short = ByteBuffer(bytes: [1, 2])
    #expect(short.readI24() == nil)
  }
}

import FMP4
@testable import MPEGTS
import NIOCore
import Testing

@Suite("OpusPacketReader and AudioSync")
struct AudioReaderTests {
  /// A packet of 20 ms (RFC 6716 §3.1) behind a control header.
  private func packet(_ count: Int, flags: UInt8 = 0xE0, _ more: [UInt8] = []) -> [UInt8] {
    let sizes = [UInt8](repeating: 255, count: count / 255) + [UInt8(count % 255)]
    return [0x7F, flags] + sizes + more + [0xFC] + [UInt8](repeating: 1, count: count - 1)
  }

  private func frames(_ bytes: [UInt8], pieces size: Int) throws -> (OpusPacketReader, [AudioFrame]) {
    var reader = try #require(OpusPacketReader(channels: 2))
    var frames: [AudioFrame] = []
    for start in stride(from: 0, to: bytes.count, by: size) {
      reader.append(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
      while let frame = reader.next() { frames.append(frame) }
    }
    return (reader, frames)
  }

  @Test(arguments: [1, 2, 13, 1000])
  func `Opus packets of any length come out of pieces of any size`(_ size: Int) throws {
    let bytes = [1, 254, 255, 256, 510].flatMap { packet($0) }
    let (reader, frames) = try frames(bytes, pieces: size)
    #expect(frames.map(\.payload.readableBytes) == [1, 254, 255, 256, 510] && reader.damaged == 0)
    #expect(frames.allSatisfy { $0.samples == 960 && $0.rate == 48_000 } && reader.heldBytes == 0)
  }

  @Test func `Trims and an extension are skipped`() throws {
    let bytes = packet(10, flags: 0xFC, [0, 1, 0, 2, 3, 9, 9, 9]) + packet(20)
    #expect(try frames(bytes, pieces: 5).1.map(\.payload.readableBytes) == [10, 20])
  }

  @Test func `Bytes between Opus packets count as damage once`() throws {
    let (reader, frames) = try frames(packet(10) + [1, 2, 0x7F, 3] + packet(11), pieces: 100)
    #expect(frames.map(\.payload.readableBytes) == [10, 11] && reader.damaged == 1)
  }

  @Test(arguments: zip(UInt8(0)...9, [nil, 19, 19, 24, 25, 26, 27, 28, 29, nil]))
  func `Each assignment of one to eight channels has its identification header`(_ code: UInt8, _ length: Int?) {
    let reader = OpusPacketReader(channels: code)
    #expect((reader == nil) == (length == nil))
    guard var reader, let length else { return }
    reader.append(ByteBuffer(bytes: packet(10)))
    let frame = reader.next()
    let record = frame?.record ?? []
    #expect(record.count == length && record.prefix(8) == Array("OpusHead".utf8)[...] && record[9] == code)
  }

  /// Frames of this test: a sync byte, and the number of all bytes.
  private func next(_ sync: inout AudioSync) -> UInt8? {
    let found = sync.frame(
      least: 2, header: { bytes in bytes.byte(0) == 0xAA ? bytes.byte(1).map { ($0, byteCount: Int($0)) } : nil },
      following: 1, follows: { $0.byte($1) == 0xAA })
    if let found { sync.bytes.skip(Int(found)) }
    return found
  }

  @Test func `The first frame counts once another one follows it, later ones at once`() {
    var sync = AudioSync()
    sync.bytes.append(ByteBuffer(bytes: [9, 0xAA, 4, 1, 2]))
    #expect(next(&sync) == nil, "what follows has not come")
    sync.bytes.append(ByteBuffer(bytes: [0xAA, 3, 1]))
    #expect(next(&sync) == 4)
    #expect(next(&sync) == 3)
    #expect(sync.damaged == 0, "what is in front of the first frame is no damage")
  }

  @Test func `A header within a frame is none, and a run of lost bytes counts once`() {
    var sync = AudioSync()
    sync.begin()
    sync.bytes.append(ByteBuffer(bytes: [0xAA, 2, 7, 0xAA, 3, 8, 8, 0xAA, 2, 0xAA, 2]))
    #expect(next(&sync) == 2)
    #expect(next(&sync) == 2, "the one of three bytes is followed by none")
    #expect(sync.damaged == 1)
    #expect(next(&sync) == 2)
  }
}

/// Channels that the header of a frame leaves to a program config element within it.
@Suite struct ADTSReaderTests {
  /// The beginning of 7.1(wide) by ffmpeg 5.1, and the configuration that its `aac_adtstoasc` makes of it.
  private static let element: [UInt8] =
    [0xA0, 0x99, 0x09, 0x00, 0x04, 0x00, 0x18, 0xC8, 0x0D] + Array("Lavc59.37.100".utf8) + [0xDE, 0x02]
  private static let record: [UInt8] =
    [0x11, 0x80, 0x04, 0xC8, 0x48, 0x00, 0x20, 0x00, 0xC6, 0x40, 0x0D] + Array("Lavc59.37.100".utf8)

  private static func frame(_ payload: [UInt8]) -> [UInt8] {
    let size = payload.count + 7
    return [0xFF, 0xF1, 0x4C, UInt8(size >> 11), UInt8(size >> 3 & 255), UInt8(size & 7) << 5 | 31, 0xFC] + payload
  }

  private func frames(_ bytes: [UInt8], pieces size: Int = 1000) -> (ADTSReader, [AudioFrame]) {
    var reader = ADTSReader()
    reader.begin()
    var frames: [AudioFrame] = []
    for start in stride(from: 0, to: bytes.count, by: size) {
      reader.append(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
      while let frame = reader.next() { frames.append(frame) }
    }
    return (reader, frames)
  }

  @Test(arguments: [1, 9, 1000]) func `A program config element holds for the frames behind it`(_ size: Int) throws {
    let (reader, found) = frames(
      Self.frame(Self.element) + Self.frame([0x21, 1, 2]) + Self.frame([0x22, 3]), pieces: size)
    #expect(found.count == 3 && found.allSatisfy { $0.record == Self.record } && reader.damaged == 0)
    #expect(found[0].payload.readableBytes == Self.element.count && found[2].payload.readableBytes == 2)
    let codec = try Codec(.aac, record: ByteBuffer(bytes: Self.record))
    #expect(codec.audio?.channels == 8 && codec.audio?.sampleRate == 48_000)
  }

  @Test func `Frames before it are lost, and one that is cut off is none`() {
    let (reader, found) = frames(
      Self.frame([0x21, 1]) + Self.frame(Array(Self.element.prefix(12))) + Self.frame(Self.element)
        + Self.frame([0x21, 7]))
    #expect(found.count == 2 && reader.damaged > 0 && found.allSatisfy { $0.record == Self.record })
  }

  @Test func `Bytes of any kind make no frame fail`() {
    for first in UInt8.min...UInt8.max {
      for length in [1, 5, 40] {
        let payload = [first] + [UInt8](repeating: first ^ 0x5A, count: length)
        _ = frames(Self.frame(payload) + Self.frame(payload))
      }
    }
  }
}

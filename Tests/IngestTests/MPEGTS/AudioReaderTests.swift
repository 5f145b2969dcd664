import NIOCore
import Testing

@testable import Ingest

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

import FMP4
import IngestSupport
@testable import MPEGTS
import NIOCore
import Testing

@Suite("Audio of the field: LATM, AC-3 and E-AC-3")
struct FieldAudioTests {
  private func frames(_ reader: some AudioFrameReader, _ bytes: [UInt8], pieces size: Int) -> (Int, [AudioFrame]) {
    var reader = reader
    var frames: [AudioFrame] = []
    reader.begin()
    for start in stride(from: 0, to: bytes.count, by: size) {
      reader.append(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
      while let frame = reader.next() { frames.append(frame) }
    }
    return (reader.damaged, frames)
  }

  private func payload(_ frame: AudioFrame) -> [UInt8] { Array(frame.payload.readableBytesView) }

  @Test func `Frames of LOAS come out of pieces of any size, with the configuration of an earlier one`() {
    let payloads = (0..<5).map { [UInt8](repeating: UInt8($0), count: [3, 254, 255, 256, 600][$0]) }
    let bytes = payloads.enumerated().flatMap { TransportScript.loas($1, repeatsConfiguration: $0 % 2 == 0) }
    for size in [1, 2, 3, 7, 100, bytes.count] {
      let (damaged, frames) = frames(LATMReader(), bytes, pieces: size)
      #expect(frames.map(payload) == payloads && damaged == 0)
      #expect(frames.allSatisfy { $0.record == [0x11, 0x90] && $0.rate == 48_000 && $0.samples == 1024 })
    }
  }

  @Test func `Bytes of G.711 are frames as they come, without a gap`() {
    let bytes = (0..<20_000).map { UInt8($0 % 251) }
    for size in [1, 7, 184, 9000, bytes.count] {
      let (_, found) = frames(G711SampleReader(.alaw), bytes, pieces: size)
      #expect(found.flatMap(payload) == bytes)
      #expect(found.map(\.samples).reduce(0, +) == 20_000 && found.allSatisfy { $0.samples <= 8000 && $0.rate == 8000 })
      #expect(zip(found, found.dropFirst()).allSatisfy { $0.position + Int($0.samples) == $1.position })
    }
  }

  @Test func `Stream types of cameras are G.711, but not on discs`() {
    let (none, disc) = (ElementDescriptors(ByteBuffer()), ElementDescriptors(ByteBuffer(bytes: [5, 4] + "HDMV".utf8)))
    #expect(ElementContent(0x90, none, inProgram: none) == .g711(.alaw))
    #expect(ElementContent(0x91, none, inProgram: none) == .g711(.mulaw))
    #expect(!ElementContent(0x90, none, inProgram: disc).isTaken)
  }

  @Test func `LOAS without a configuration gives nothing, and damage counts once`() {
    let bare = TransportScript.loas([1, 2], repeatsConfiguration: false)
    #expect(frames(LATMReader(), bare + bare, pieces: 9).1.isEmpty)
    let whole = TransportScript.loas([1, 2])
    let (damaged, found) = frames(LATMReader(), whole + [9, 9, 9, 0x56, 9] + whole + whole, pieces: 5)
    #expect(found.count == 3 && damaged == 1)
    // A length that leads beyond the element.
    var short = whole
    short[2] -= 1
    #expect(frames(LATMReader(), short, pieces: 3).1.isEmpty)
  }

  /// A frame of AC-3 in stereo (ETSI TS 102 366 §4.3, §4.4), as long as its codes of rate and size say.
  private func ac3(_ rate: UInt8, _ size: UInt8, bytes: Int, _ filler: UInt8 = 1) -> [UInt8] {
    [0x0B, 0x77, 0, 0, rate << 6 | size, 8 << 3, 2 << 5, 0] + [UInt8](repeating: filler, count: bytes - 8)
  }

  /// Table 4.13, in bytes. At 44.1 kHz sizes alternate by a word.
  @Test func `A frame of AC-3 has the length of the table`() {
    for (rate, size, bytes) in [
      (0, 0, 128), (0, 8, 256), (0, 37, 2560), (1, 0, 138), (1, 1, 140), (1, 8, 278), (1, 9, 280), (1, 36, 2786),
      (1, 37, 2788), (2, 8, 384), (2, 36, 3840),
    ] as [(UInt8, UInt8, Int)] {
      #expect(AC3.Frame(ByteBuffer(bytes: ac3(rate, size, bytes: bytes)))?.byteCount == bytes, "\(rate) \(size)")
    }
    for (rate, size) in [(3, 8), (0, 38), (0, 63)] as [(UInt8, UInt8)] {
      #expect(AC3.Frame(ByteBuffer(bytes: ac3(rate, size, bytes: 256))) == nil)
    }
  }

  @Test func `Frames of AC-3 come out of pieces of any size, with what they state`() {
    let bytes = (0..<5).flatMap { ac3(0, 8, bytes: 256, $0) }
    for size in [1, 2, 7, 100, 256, bytes.count] {
      let (damaged, found) = frames(AC3FrameReader(), bytes, pieces: size)
      #expect(found.map { payload($0)[100] } == [0, 1, 2, 3, 4] && damaged == 0)
      #expect(found.map(\.position) == [0, 256, 512, 768, 1024])
      // 48 kHz, bsid 8, stereo, 64 kbit/s (annex F.4).
      #expect(found.allSatisfy { $0.record == [0x10, 0x10, 0x80] && $0.rate == 48_000 && $0.samples == 1536 })
    }
  }

  @Test func `Between frames of AC-3 other bytes count once, and sync words within a frame do not`() {
    let one = ac3(0, 8, bytes: 256)
    let (damaged, found) = frames(AC3FrameReader(), one + [9, 9, 0x0B, 9] + one + one, pieces: 11)
    #expect(found.count == 3 && damaged == 1)
    var inner = one
    inner.replaceSubrange(100..<108, with: one.prefix(8))
    let (none, all) = frames(AC3FrameReader(), inner + inner + inner, pieces: 50)
    #expect(all.count == 3 && none == 0)
    // Joined in the midst: the false beginning has none behind it.
    #expect(frames(AC3FrameReader(), Array(inner.dropFirst(90)) + one + one, pieces: 50).1.map(payload) == [one, one])
  }

  /// A frame of E-AC-3: 48 kHz, stereo where it is independent; with Lrs and Rrs where it depends.
  private func frame(isDependent: Bool = false, blocks: UInt32 = 3, substream: UInt32 = 0, bytes: Int) -> [UInt8] {
    var value: UInt64 = 0
    var count = 0
    func add(_ field: UInt32, _ bits: Int) {
      value = value << UInt64(bits) | UInt64(field)
      count += bits
    }
    let fields: [(UInt32, Int)] = [
      (isDependent ? 1 : 0, 2), (substream, 3), (UInt32(bytes / 2 - 1), 11), (0, 2), (blocks, 2), (2, 3), (0, 1),
      (16, 5),
      (31, 5), (0, 1), (isDependent ? 1 : 0, 1), (isDependent ? 1 << 9 : 0, 16),
    ]
    for (field, bits) in fields { add(field, bits) }
    value <<= UInt64(64 - count)
    let head = (0..<8).map { UInt8(value >> UInt64(56 - 8 * $0) & 255) }
    return [0x0B, 0x77] + head + [UInt8](repeating: 1, count: bytes - 10)
  }

  @Test func `A sample of E-AC-3 holds six blocks, and the frames that depend on them`() throws {
    let sample = frame(bytes: 100) + frame(isDependent: true, bytes: 60)
    let (damaged, found) = frames(EAC3FrameReader(), sample + sample + sample, pieces: 33)
    #expect(found.map(\.payload.readableBytes) == [160, 160, 160] && damaged == 0)
    #expect(found.map(\.position) == [0, 160, 320])
    let codec = try Codec(.eac3, record: ByteBuffer(bytes: try #require(found.first).record))
    #expect(codec.audio?.channels == 4 && codec.audio?.sampleRate == 48_000)

    // Two frames of three blocks.
    let halves = frame(blocks: 2, bytes: 40) + frame(blocks: 2, bytes: 40)
    #expect(frames(EAC3FrameReader(), halves + halves, pieces: 7).1.map(\.payload.readableBytes) == [80, 80])

    // Another programme is left out.
    let other = frame(bytes: 100) + frame(substream: 1, bytes: 100)
    #expect(
      frames(EAC3FrameReader(), other + other + other, pieces: 50).1.allSatisfy { $0.payload.readableBytes == 100 })
  }

  @Test func `A dependent frame that comes later costs one sample, not the track`() {
    let before = frame(bytes: 100)
    let after = before + frame(isDependent: true, bytes: 60)
    let (_, found) = frames(EAC3FrameReader(), before + before + before + after + after + after + after, pieces: 50)
    #expect(found.map(\.payload.readableBytes).suffix(2) == [160, 160])
    #expect(Set(found.map(\.record)).count == 2)
  }

  @Test func `A frame of AC-3 states its channels`() throws {
    let head: [UInt8] = [0x0B, 0x77, 0, 0, 0x1E, 0x40, 0xE1, 0x20]
    let frame = try #require(AC3.Frame(ByteBuffer(bytes: head)))
    #expect(frame.byteCount == 1792 && frame.configuration.channels == 6)
    #expect(AC3.Frame(ByteBuffer(bytes: head.dropLast())) == nil)
    var wrong = head
    wrong[4] = 0xFF
    #expect(AC3.Frame(ByteBuffer(bytes: wrong)) == nil)
  }
}

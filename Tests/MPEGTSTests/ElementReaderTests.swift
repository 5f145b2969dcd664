@testable import FMP4
import IngestSupport
@testable import MPEGTS
import NIOCore
import Testing

@Suite("Elementary streams of a transport stream")
struct ElementReaderTests {
  private func frames(_ pieces: [[UInt8]]) -> (ADTSReader, [AudioFrame]) {
    var reader = ADTSReader()
    var frames: [AudioFrame] = []
    reader.begin()
    for piece in pieces {
      reader.append(ByteBuffer(bytes: piece))
      while let frame = reader.next() { frames.append(frame) }
    }
    return (reader, frames)
  }

  @Test func `ADTS frames come out of pieces of any size, with their configuration`() {
    let bytes = (0..<5).flatMap { TransportScript.adts([UInt8](repeating: $0, count: 10 + Int($0))) }
    for size in 1...40 {
      let pieces = stride(from: 0, to: bytes.count, by: size).map { Array(bytes[$0..<min($0 + size, bytes.count)]) }
      let (reader, frames) = frames(pieces)
      #expect(frames.map(\.payload.readableBytes) == [10, 11, 12, 13, 14] && reader.damaged == 0)
      #expect(frames.map(\.position) == [0, 17, 35, 54, 74])
      #expect(frames.first?.record == [0x11, 0x90] && frames.first?.rate == 48_000)
    }
  }

  @Test func `Bytes between ADTS frames count as damage once, and the next two frames confirm the place`() {
    let one = TransportScript.adts([1, 2, 3])
    let (reader, frames) = frames([one + [9, 9, 9] + one + one])
    #expect(frames.count == 3 && reader.damaged == 1)
  }

  /// A slice of interlaced video: an IDR picture or a P picture, as a frame or as one field.
  private func slice(_ number: UInt32, _ isBottom: Bool?, isKey: Bool = false, bits: Int) -> [UInt8] {
    var value: UInt64 = 0b1_0001000_1
    value = value << UInt64(bits) | UInt64(number)
    value = value << 2 | (isBottom.map { $0 ? 3 : 2 } ?? 0)
    value <<= UInt64(64 - 11 - bits)
    return [0, 0, 1, isKey ? 0x65 : 0x41] + (0..<8).map { UInt8(value >> UInt64(56 - 8 * $0) & 255) | ($0 > 2 ? 1 : 0) }
  }

  @Test func `Two fields of a frame are one sample, and a field alone is one, too`() throws {
    let record = try H264.Configuration(
      record: ByteBuffer(
        bytes: [
          0x01, 0x64, 0x00, 0x1E, 0xFF, 0xE1, 0x00, 0x18, 0x67, 0x64, 0x00, 0x1E, 0xAC, 0xD9, 0x40, 0xB4, 0x24, 0xD8,
          0x20, 0x80, 0x00, 0x00, 0x03, 0x00, 0x80, 0x00, 0x00, 0x19, 0x0F, 0x8A, 0x14, 0xCB, 0x01, 0x00, 0x06, 0x68,
          0xFB, 0xA3, 0xCB, 0x22, 0xC0, 0xFD, 0xF8, 0xF8, 0x00,
        ]))
    let syntax = try #require(H264.FieldSyntax(sequenceParameters: record.sps[0]))
    let bits = syntax.frameNumberBits
    let sets = (record.sps + record.pps).flatMap { [0, 0, 0, 1] + Array($0) } as [UInt8]
    let pictures: [(UInt64, [UInt8])] = [
      (0, sets + slice(0, false, isKey: true, bits: bits)), (1800, slice(0, true, bits: bits)),
      (3600, slice(1, false, bits: bits)), (5400, slice(1, true, bits: bits)),
      (7200, slice(2, nil, bits: bits)),
      // The second field of this one is lost.
      (10_800, slice(3, false, bits: bits)), (14_400, slice(4, false, bits: bits)),
      (16_200, slice(4, true, bits: bits)),
    ]
    var reader = VideoElementReader(.h264)
    var clock = ProgramClock.counter
    var events: [ElementEvent] = []
    for (time, bytes) in pictures {
      let step = PESReader.Step(
        begins: PESReader.Times(presentation: time + 3600, decode: time),
        bytes: ByteBuffer(bytes: [0, 0, 1, 9, 0x10] + bytes))
      reader.receive(step, clock: &clock, to: &events)
    }
    reader.finish(clock: &clock, to: &events)
    let units = events.compactMap { if case .unit(let unit) = $0 { unit } else { nil } }
    #expect(units.map(\.decode) == [0, 3600, 7200, 10_800, 14_400])
    #expect(units.map(\.payload.readableBytes) == [26, 26, 13, 13, 26] && reader.heldBytes == 0)
  }

  @Test func `Several audio frames of a PES packet are counted on without drift`() {
    var reader = AudioElementReader(ADTSReader())
    var clock = ProgramClock.counter
    var events: [ElementEvent] = []
    let frame = TransportScript.adts([1, 2, 3], rateIndex: 4)
    for packet in 0..<100 {
      let times = packet == 0 ? PESReader.Times(presentation: 1000) : PESReader.Times()
      let bytes = ByteBuffer(bytes: (0..<10).flatMap { _ in frame })
      reader.receive(PESReader.Step(begins: times, bytes: bytes), clock: &clock, to: &events)
    }
    let times = events.compactMap { event -> Int64? in
      if case .unit(let unit) = event { unit.presentation } else { nil }
    }
    #expect(times.count == 1000)
    for (index, time) in times.enumerated() {
      let exact: Double = Double(index) * 1024 * 90_000 / 44_100
      #expect(abs(Double(time - 1000) - exact) <= 0.5)
    }
  }

  @Test func `A time is that of the first frame that begins in its PES packet`() {
    var reader = AudioElementReader(ADTSReader())
    var clock = ProgramClock.counter
    var events: [ElementEvent] = []
    let bytes = (0..<4).flatMap { TransportScript.adts([UInt8](repeating: $0, count: 20)) }
    // The second packet begins within the second frame.
    for (part, time) in [(bytes[..<40], UInt64(0)), (bytes[40...], 5000)] {
      let step = PESReader.Step(begins: .init(presentation: time), bytes: ByteBuffer(bytes: part))
      reader.receive(step, clock: &clock, to: &events)
    }
    let times = events.compactMap { event -> Int64? in
      if case .unit(let unit) = event { unit.presentation } else { nil }
    }
    #expect(times == [0, 1920, 5000, 6920])
  }

  @Test func `Access units end where the next begins, whatever pieces they come in`() {
    let first: [UInt8] = [0, 0, 0, 1, 9, 0xF0, 0, 0, 1, 0x65, 0x88, 1, 2, 0, 0, 1, 0x65, 0x40, 3]
    let second: [UInt8] = [0, 0, 1, 0x41, 0x9A, 4, 5]
    let third: [UInt8] = [0, 0, 0, 1, 6, 5, 1, 0, 0x80, 0, 0, 1, 0x41, 0x9A, 6]
    let bytes = first + second + third
    for size in 1...bytes.count {
      var finder = AccessUnitFinder(.h264)
      var units: [AccessUnitFinder.Unit] = []
      finder.begin(PESReader.Times(presentation: 7))
      for start in stride(from: 0, to: bytes.count, by: size) {
        units += finder.receive(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
      }
      if let last = finder.finish() { units.append(last) }
      // A zero before a start code of three bytes belongs to what is in front.
      #expect(units.map(\.bytes.readableBytes) == [18, 8, 14])
      #expect(units.map(\.times.presentation) == [7, nil, nil] && units.allSatisfy { !$0.isDamaged })
    }
  }

  @Test func `A frame without its first slice is damaged`() {
    var finder = AccessUnitFinder(.h264)
    let units = finder.receive(ByteBuffer(bytes: [0, 0, 1, 0x41, 0x40, 9, 0, 0, 1, 0x41, 0x9A, 4, 0, 0, 1, 9, 0xF0]))
    #expect(units.map(\.isDamaged) == [true, false])
  }

  @Test func `PES packets of every shape: without times, without length, header over packets, lengths that lie`() {
    var reader = PESReader(keepsLength: true)
    let packet = TransportScript.pes(0xC0, 5, decode: 4, [1, 2, 3])
    for cut in 1..<packet.count {
      let first = reader.receive(ByteBuffer(bytes: packet[..<cut]), isUnitStart: true)
      let second = reader.receive(ByteBuffer(bytes: packet[cut...]), isUnitStart: false)
      let times = [first.begins, second.begins].compactMap(\.self)
      #expect(times == [PESReader.Times(presentation: 5, decode: 4)])
      #expect([first.bytes, second.bytes].compactMap { $0?.readableBytes }.reduce(0, +) == 3)
    }
    // More bytes than it says are no part of it; a length shorter than its header is none.
    let long = reader.receive(ByteBuffer(bytes: packet + [9, 9]), isUnitStart: true)
    #expect(long.bytes?.readableBytes == 3)
    let lying = reader.receive(ByteBuffer(bytes: TransportScript.pes(0xC0, 5, length: 4, [1])), isUnitStart: true)
    #expect(lying.begins == nil && reader.malformed == 1)
    _ = reader.receive(ByteBuffer(bytes: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), isUnitStart: true)
    #expect(reader.malformed == 2)
    let bare = reader.receive(ByteBuffer(bytes: TransportScript.pes(0xE0, nil, length: 0, [1, 2])), isUnitStart: true)
    #expect(bare.begins == PESReader.Times() && bare.bytes?.readableBytes == 2)
  }

  private func placed(_ times: [Int64], depth: Int?) -> [Int64] {
    var decoding = DecodeTimes<Int>()
    var placed: [DecodeTimes<Int>.Placed] = []
    for (index, time) in times.enumerated() {
      placed += decoding.receive(index, presentation: time, decode: nil, reorderDepth: depth, frame: nil)
    }
    placed += decoding.finish()
    #expect(placed.map(\.presentation) == times && placed.map(\.unit) == Array(times.indices))
    return placed.map(\.decode)
  }

  @Test(arguments: [Int?.some(2), nil])
  func `Missing decode times are the presentation times in rising order, early enough`(_ depth: Int?) {
    // I P B B P B B with a reference among the B frames.
    let order: [Int64] = [0, 4, 2, 1, 3, 8, 6, 5, 7, 12, 10, 9, 11]
    let shown: [Int64] = order.map { 90_000 + $0 * 3600 }
    let expected: [Int64] = order.indices.map { 90_000 + (Int64($0) - 2) * 3600 }
    #expect(placed(shown, depth: depth) == expected)
  }

  @Test func `Without reordering the decode time is the presentation time`() {
    let shown = (0..<20).map { Int64($0) * 3600 }
    #expect(placed(shown, depth: 0) == shown)
    #expect(placed(shown, depth: 2) == shown)
    #expect(placed(shown, depth: nil) == shown)
  }

  @Test func `Reordering that begins late keeps decode times rising`() {
    let order: [Int64] = Array(0..<20) + [23, 21, 22, 26, 24, 25, 29, 27, 28]
    let shown: [Int64] = order.map { $0 * 3600 }
    let decoded = placed(shown, depth: nil)
    #expect(zip(decoded, decoded.dropFirst()).allSatisfy { $0 < $1 })
    #expect(decoded.last ?? 0 <= shown.last ?? 0)
  }

  @Test func `Frames without a time are continued at the rate`() {
    var decoding = DecodeTimes<Int>()
    var placed: [DecodeTimes<Int>.Placed] = []
    for index in 0..<6 {
      placed += decoding.receive(
        index, presentation: index % 3 == 0 ? Int64(index) * 1800 : nil, decode: nil, reorderDepth: 0, frame: 1800)
    }
    #expect(placed.map(\.presentation) == (0..<6).map { $0 * 1800 } && decoding.untimed == 4)
  }

  @Test func `Frames without any time are given up, and hold nothing`() {
    var decoding = DecodeTimes<Int>()
    for index in 0..<40 {
      let placed = decoding.receive(index, presentation: nil, decode: nil, reorderDepth: nil, frame: nil)
      #expect(placed.isEmpty)
    }
    let held = decoding.held { _ in 1 }
    #expect(held == 0 && decoding.untimed == 40)
  }
}

import IngestSupport
@testable import MPEGTS
import NIOCore
import Testing

@Suite("Damaged transport streams")
struct TransportDamageTests {
  private static let fixture = TransportFixture(name: "ffmpeg-5.1-bframes-aac44", pids: [256, 257])

  private func packets() throws -> [[UInt8]] {
    let bytes = try Self.fixture.bytes()
    return stride(from: 0, to: bytes.count, by: 188).map { Array(bytes[$0..<min($0 + 188, bytes.count)]) }
  }

  private func pid(_ packet: [UInt8]) -> UInt16 { UInt16(packet[1] & 31) << 8 | UInt16(packet[2]) }

  /// Frames whose bytes differ from those of the undamaged stream.
  private func strangers(_ events: [TransportEvent], _ whole: [TransportEvent]) -> Int {
    Self.fixture.pids.reduce(0) { sum, pid in
      let known = Dictionary(whole.units(pid).map { ($0.payload, $0.presentation) }) { first, _ in first }
      return sum + events.units(pid).count { known[$0.payload] == nil }
    }
  }

  @Test func `A missing packet costs the frames that it belongs to, and no other is changed`() throws {
    let packets = try packets()
    let whole = TransportScript.events(packets.flatMap(\.self)).1
    for missing in stride(from: 8, to: packets.count - 1, by: 5) where Self.fixture.pids.contains(pid(packets[missing]))
    {
      var rest = packets
      rest.remove(at: missing)
      let (stream, events) = TransportScript.events(rest.flatMap(\.self))
      #expect(stream.counts.gaps == 1, "packet \(missing)")
      #expect(strangers(events, whole) == 0, "packet \(missing)")
      let video = whole.units(256).count - events.units(256).count
      // Without the first parameter sets, nothing of the first group of pictures can be decoded.
      #expect(video <= (missing < 60 ? 30 : 2), "packet \(missing)")
      #expect(events.lost(256) + events.lost(257) >= 1, "packet \(missing)")
    }
  }

  @Test func `Sixteen missing packets of a PID do not show in its counter, but in what the transport says`() throws {
    let packets = try packets()
    let whole = TransportScript.events(packets.flatMap(\.self)).1
    for begin in stride(from: 60, to: packets.count - 60, by: 11) {
      var (end, missing) = (begin, 0)
      while missing < 16, end < packets.count {
        if pid(packets[end]) == 256 { missing += 1 }
        end += 1
      }
      var stream = TransportStream()
      var events: [TransportEvent] = []
      // The transport ends in the midst of a packet.
      let before = packets[..<begin].flatMap(\.self).dropLast(begin % 2 == 0 ? 100 : 0)
      stream.receive(ByteBuffer(bytes: before), to: &events)
      stream.noteLoss(bytes: 188 * (end - begin))
      stream.receive(ByteBuffer(bytes: packets[end...].flatMap(\.self)), to: &events)
      stream.finish(to: &events)
      #expect(stream.counts.gaps >= 1, "packets \(begin) to \(end)")
      #expect(strangers(events, whole) == 0, "packets \(begin) to \(end)")
    }
  }

  @Test func `A packet that is sent twice counts once`() throws {
    let packets = try packets()
    let whole = TransportScript.events(packets.flatMap(\.self)).1
    let (stream, events) = TransportScript.events(packets.flatMap { $0 + $0 })
    #expect(stream.counts.duplicates > 200 && stream.counts.gaps == 0)
    for pid in Self.fixture.pids { #expect(events.units(pid).map(\.payload) == whole.units(pid).map(\.payload)) }
  }

  @Test func `Packets in the wrong order are lost frames, never wrong ones`() throws {
    var packets = try packets()
    let whole = TransportScript.events(packets.flatMap(\.self)).1
    packets.swapAt(100, 101)
    packets.swapAt(150, 152)
    let (stream, events) = TransportScript.events(packets.flatMap(\.self))
    #expect(stream.counts.gaps > 0)
    #expect(strangers(events, whole) == 0)
  }

  @Test func `Bytes that are inserted or cut off are skipped, and the packets behind them found`() throws {
    var bytes = try packets().flatMap(\.self)
    bytes.insert(contentsOf: [UInt8](repeating: 0x47, count: 300), at: 188 * 90)
    bytes.removeSubrange(188 * 200..<188 * 200 + 77)
    let (stream, events) = TransportScript.events([1, 2, 3] + bytes)
    #expect(stream.counts.skippedBytes > 0 && stream.counts.skippedBytes < 1000)
    #expect(events.units(256).count >= 70)
  }

  @Test func `Random changes of bits never trap`() throws {
    let bytes = try packets().flatMap(\.self)
    var state: UInt64 = 7
    func random() -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33)
    }
    for round in 0..<60 {
      var damaged = bytes
      for _ in 0..<(1 << (round % 12)) { damaged[random() % damaged.count] ^= UInt8(1 << (random() % 8)) }
      let (stream, _) = TransportScript.events(damaged, .all)
      #expect(stream.counts.packets > 0)
    }
    let (stream, events) = TransportScript.events((0..<200_000).map { _ in UInt8(random() & 255) })
    #expect(events.isEmpty && stream.counts.skippedBytes > 100_000)
  }
}

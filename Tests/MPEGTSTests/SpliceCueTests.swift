import Base
import FMP4
import IngestSupport
@testable import MPEGTS
import NIOCore
import Publishing
import Testing

@Suite struct SpliceCueTests {
  /// A section with a right checksum. `length` is that of the command; nil leaves it unstated.
  static func section(
    flags: UInt8 = 0, adjustment: UInt32 = 0, command: UInt8, _ body: [UInt8], length: Int? = nil,
    descriptors: [UInt8] = []
  ) -> [UInt8] {
    let stated = length ?? body.count
    let inner =
      [0, flags] + bytes(adjustment) + [0, 0xFF, 0xF0 | UInt8(stated >> 8), UInt8(stated & 255), command] + body
      + [UInt8(descriptors.count >> 8), UInt8(descriptors.count & 255)] + descriptors
    let size = inner.count + 4
    let whole = [0xFC, 0x30 | UInt8(size >> 8), UInt8(size & 255)] + inner
    return whole + bytes(MPEGChecksum.of(ByteBuffer(bytes: whole)))
  }

  static func bytes(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(value >> UInt32(24 - $0 * 8) & 255) } }

  static func read(_ section: [UInt8]) -> SpliceCue? {
    PSISection(ByteBuffer(bytes: section)).flatMap { SpliceCue($0, pid: 300) }
  }

  static func cue(_ section: [UInt8]) -> StreamCue? {
    if case .cue(let cue)? = read(section) { cue } else { nil }
  }

  /// Event 7, out of the network, at 2^33 - 1, for 90 ticks.
  static let insertion: [UInt8] =
    [0, 0, 0, 7, 0x7F, 0xEF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE, 0, 0, 0, 90, 0, 1, 0, 0]

  @Test func `The adjustment is added modulo 33 bits`() throws {
    let section = Self.section(adjustment: 11, command: 5, Self.insertion)
    let cue = try #require(Self.cue(section))
    #expect(cue.presentation == 10 && cue.eventID == 7 && cue.isOutOfNetwork == true && cue.duration == 90)
    #expect(cue.section == section && cue.pid == 300 && !cue.isCancelled)
    #expect(Self.cue(Self.section(flags: 1, command: 5, Self.insertion))?.presentation == 1 << 32 - 1)
  }

  @Test func `Insertions without a time are for now, and cancellations are told`() {
    let now = Self.cue(Self.section(command: 5, [0, 0, 0, 7, 0x7F, 0x5F, 0, 1, 0, 0]))
    #expect(now?.presentation == nil && now?.isOutOfNetwork == false && now?.duration == nil)
    let cancelled = Self.cue(Self.section(command: 5, [0, 0, 0, 7, 0xFF]))
    #expect(cancelled?.isCancelled == true && cancelled?.eventID == 7)
    #expect(Self.cue(Self.section(command: 6, [0x7F]))?.presentation == nil)
  }

  @Test func `Of components the first one's time counts`() {
    let body: [UInt8] = [0, 0, 0, 7, 0x7F, 0x8F, 2, 1, 0xFE, 0, 0, 0, 5, 2, 0xFE, 0, 0, 0, 9, 0, 1, 0, 0]
    #expect(Self.cue(Self.section(command: 5, body))?.presentation == 5)
  }

  @Test func `A time signal has the event, the type and the duration of its descriptor`() {
    let descriptor: [UInt8] =
      [1, 4, 0, 0, 0, 0, 2, 20] + Array("CUEI".utf8)
      + [0, 0, 0, 8, 0x7F, 0xFF, 1, 0, 0, 0, 2, 0, 0, 0x34, 0, 0]
    for length in [nil, 0xFFF] {
      let cue = Self.cue(
        Self.section(command: 6, [0xFE, 0, 0, 0, 3], length: length, descriptors: descriptor))
      #expect(cue?.presentation == 3 && cue?.eventID == 8 && cue?.segmentationType == 0x34)
      #expect(cue?.duration == 1 << 32 + 2 && cue?.isOutOfNetwork == nil)
    }
  }

  @Test func `What is encrypted or cut off is no cue`() {
    guard case .encrypted? = Self.read(Self.section(flags: 0x80, command: 5, Self.insertion)) else {
      Issue.record("taken")
      return
    }
    for count in 0..<16 {
      guard case .damaged? = Self.read(Self.section(command: 5, Array(Self.insertion.prefix(count)))) else {
        // Five bytes may be a cancellation, which these are not.
        Issue.record("taken with \(count) bytes")
        return
      }
    }
    guard case .damaged? = Self.read(Self.section(command: 99, [])) else {
      Issue.record("a command that does not exist")
      return
    }
    // A descriptor that ends early costs itself alone.
    let cut = Self.cue(Self.section(command: 6, [0xFE, 0, 0, 0, 3], descriptors: [2, 20, 0x43]))
    #expect(cut?.presentation == 3 && cut?.eventID == nil)
  }

  @Test func `A value of 33 bits is the one nearest to a time`() {
    let wrap: Int64 = 1 << 33
    #expect(ProgramClock.ticks(5, near: wrap * 3 - 5) == wrap * 3 + 5)
    #expect(ProgramClock.ticks(UInt64(wrap) - 5, near: wrap * 3 + 5) == wrap * 3 - 5)
    #expect(ProgramClock.ticks(5, near: -wrap + 9) == -wrap + 5)
    #expect(ProgramClock.ticks(7, near: .max) != 0)
  }

  @Test func `A cue before the first media has its time on the timeline all the same`() throws {
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(7, pid: 32)]))
    script.add(table: 32, TransportScript.map(7, [(0x0F, 256, []), (0x86, 300, [])]))
    script.add(table: 300, Self.section(command: 6, [0xFE, 0, 0, 0, 90]))
    // The media begins 90 ticks before the wrap, the cue is 90 ticks behind it.
    for frame in 0..<100 {
      let time = (1 << 33 - 90 + UInt64(frame) * 1920) % (1 << 33)
      script.add(256, TransportScript.pes(0xC0, time, TransportScript.adts([1, 2, 3])))
    }
    // Now: at the newest frame that has come.
    script.add(table: 300, Self.section(command: 6, [0x7F]))
    var publication = TransportPublication(
      reading: ClockReading(wall: WallTime(nanoseconds: 0), monotonic: MonotonicTime(nanoseconds: 0)))
    var actions: [PublicationAction] = []
    try publication.receive(ByteBuffer(bytes: script.bytes), now: MonotonicTime(nanoseconds: 0), to: &actions)
    try publication.tick(now: MonotonicTime(nanoseconds: 3_000_000_000), to: &actions)
    try publication.finish(now: MonotonicTime(nanoseconds: 3_000_000_001), to: &actions)
    let cues = actions.compactMap { if case .inBand(.cue(let cue)) = $0 { cue } else { nil } }
    #expect(cues.map { $0.mediaTime.rescaled(to: 90_000) } == [180, 99 * 1920])
    let opening = actions.firstIndex { if case .event(.tracks) = $0 { true } else { false } }
    let first = actions.firstIndex { if case .inBand(.cue) = $0 { true } else { false } }
    #expect((opening ?? .max) < (first ?? 0))
  }
}

import Base
import FMP4
import IngestSupport
import MPEGTS
import NIOCore
import Publishing
import Support
import Testing

/// A sender whose clock wraps, and runs faster or slower than the server's: for 64 hours and twice, or for 20 and once.
@Suite("A transport stream for days", .timeLimit(.minutes(2)))
struct TransportDaysTests {
  private static let hours: Int64 = isLong ? 64 : 20

  private static let parameterSets: [UInt8] = {
    let record = try? H264.Configuration(record: ByteBuffer(bytes: PublishedRecord.avc25))
    return ((record?.sps ?? []) + (record?.pps ?? [])).flatMap { [0, 0, 0, 1] + $0 }
  }()

  /// One key frame a second.
  private static func frame(_ number: UInt64, from first: UInt64, into script: inout TransportScript) {
    let time = (first + number * 90_000) & ((1 << 33) - 1)
    let unit: [UInt8] = [0, 0, 0, 1, 9, 0xF0] + parameterSets + [0, 0, 1, 0x65, 0x88, 0x84, UInt8(number & 255)]
    script.add(256, TransportScript.pes(0xE0, time, length: 0, unit))
  }

  @Test(arguments: [-100, 100]) func `Times stay those of the sender, to the tick`(_ partsPerMillion: Int64) throws {
    let (seconds, first) = (UInt64(Self.hours * 3600), UInt64(1 << 33) - 40_000 * 90_000)
    var publication = TransportPublication(reading: ClockReading(wall: 0, monotonic: 0))
    var tables = TransportScript()
    tables.add(table: 0, TransportScript.association([(1, pid: 32)]))
    tables.add(table: 32, TransportScript.map(1, [(0x1B, 256, [])]))
    var actions: [PublicationAction] = []
    try publication.receive(ByteBuffer(bytes: tables.bytes), now: 0, to: &actions)
    var (script, expected, discontinuities, wrong) = (TransportScript(), Int64(0), 0, [Int64]())
    var timescale: Int64 = 0
    for second in 0..<seconds {
      script = TransportScript(continuing: script)
      Self.frame(second, from: first, into: &script)
      let arrival = Int64(second) * (1_000_000_000 + partsPerMillion * 1000)
      try publication.receive(ByteBuffer(bytes: script.bytes), now: .at(arrival), to: &actions)
      try publication.tick(now: .at(arrival), to: &actions)
      for action in actions {
        switch action {
        case .event(.tracks(let tracks)): timescale = Int64(tracks.first?.timescale ?? 0)
        case .event(.discontinuity): discontinuities += 1
        case .event(.sample(let sample)):
          if sample.decodeTime != expected * timescale { wrong.append(expected) }
          expected += 1
        default: break
        }
      }
      actions = []
    }
    #expect(wrong.isEmpty && discontinuities == 0, "\(wrong.count) wrong, the first is \(wrong.first ?? -1)")
    #expect(expected >= Self.hours * 3600 - 2)
    #expect(publication.counts.gaps == 0)
  }
}

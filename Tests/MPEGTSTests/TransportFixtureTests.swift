import Base
import FMP4
import IngestSupport
@testable import MPEGTS
import NIOCore
@testable import Publishing
import Support
import Testing

@Suite("Transport streams of other programs")
struct TransportFixtureTests {
  private typealias Packet = TransportFixture.Packet

  private func events(
    _ fixture: TransportFixture, _ arrival: Fixtures.Arrival = .whole
  ) throws -> (TransportStream, [TransportEvent]) {
    var stream = TransportStream(.all)
    var events: [TransportEvent] = []
    for piece in arrival.pieces(of: try fixture.bytes()) { stream.receive(piece, to: &events) }
    stream.finish(to: &events)
    return (stream, events)
  }

  @Test(arguments: TransportFixture.all)
  func `Every access unit has the times that ffprobe tells, up to one constant`(_ fixture: TransportFixture) throws {
    let (stream, events) = try events(fixture)
    let expected = try fixture.packets()
    let video = try #require(fixture.pids.first)
    let first = try #require(events.units(video).first)
    let shift = first.decode - (try #require(expected[video]?.first).decode)
    for pid in fixture.pids {
      let known = try #require(expected[pid])
      let units = events.units(pid)
      #expect(units.count == known.count, "PID \(pid)")
      for (unit, packet) in zip(units, known) {
        // Of a frame that is not the first of its PES packet, ffprobe rounds the time in its own way.
        let tolerance: Int64 = unit.coding == .aac ? 1 : 0
        #expect(abs(unit.presentation - packet.presentation - shift) <= tolerance, "PID \(pid): \(packet)")
        #expect(abs(unit.decode - packet.decode - shift) <= tolerance, "PID \(pid): \(packet)")
      }
      #expect(events.lost(pid) == 0 && events.records(pid).count == 1)
    }
    // The time code before the first packet of 192 bytes.
    #expect(stream.counts.skippedBytes == (fixture.name.hasSuffix("m2ts") ? 4 : 0))
    #expect(stream.counts.gaps == 0 && stream.counts.malformedPES == 0)
    #expect(stream.counts.damagedSections == 0)
  }

  @Test(arguments: TransportFixture.all, Fixtures.Arrival.allCases.filter { $0 != .whole })
  func `A stream is the same in pieces of any size`(_ fixture: TransportFixture, _ arrival: Fixtures.Arrival) throws {
    let (whole, events) = try events(fixture)
    let (stream, others) = try self.events(fixture, arrival)
    #expect(stream.counts == whole.counts)
    for pid in fixture.pids {
      #expect(others.records(pid) == events.records(pid))
      #expect(others.units(pid).map(\.payload) == events.units(pid).map(\.payload))
      #expect(others.units(pid).map(\.decode) == events.units(pid).map(\.decode))
    }
  }

  @Test(arguments: TransportFixture.all)
  func `A stream that is joined anywhere has the same frames from there on`(_ fixture: TransportFixture) throws {
    let bytes = try fixture.bytes()
    let whole = try events(fixture).1
    for start in [1, 1000, 7777, 20_011] {
      let (_, events) = TransportScript.events(Array(bytes.dropFirst(start)), .all)
      for pid in fixture.pids {
        // The last frames are the same ones. The clock begins elsewhere only where it wraps.
        let (all, joined) = (whole.units(pid), events.units(pid))
        guard let last = all.last, let same = joined.last else { continue }
        #expect(joined.count <= all.count)
        #expect(joined.suffix(joined.count - 1).map(\.payload) == all.suffix(max(joined.count - 1, 0)).map(\.payload))
        #expect((last.decode - same.decode) % (1 << 33) == 0)
      }
    }
  }

  @Test(arguments: TransportFixture.all)
  func `Of a program one publication comes, with all of its tracks`(_ fixture: TransportFixture) throws {
    var publication = TransportPublication(reading: ClockReading(wall: 0, monotonic: 0))
    var actions: [PublicationAction] = []
    for piece in Fixtures.Arrival.inRandomPieces.pieces(of: try fixture.bytes()) {
      try publication.receive(piece, now: 0, to: &actions)
    }
    try publication.finish(now: 0, to: &actions)
    try publication.tick(now: 2_500_000_000, to: &actions)
    var tracks: [TrackDescription] = []
    var samples: [TrackID: [Sample]] = [:]
    for case .event(let event) in actions {
      switch event {
      case .tracks(let found): tracks = found
      case .sample(let sample): samples[sample.track, default: []].append(sample)
      default: break
      }
    }
    let pids = fixture.name.hasSuffix("two-programs") ? Array(fixture.pids.prefix(2)) : fixture.pids
    #expect(tracks.count == pids.count)
    #expect(tracks.map(\.number) == (pids.count > 2 ? [1, 1, 2] : pids.count > 1 ? [1, 1] : [1]))
    if fixture.name.hasSuffix("two-audio") { #expect(tracks.map(\.language) == ["und", "eng", "deu"]) }
    #expect(tracks.first?.kind == .video && tracks.first?.codec.codedSize?.width == 160)
    let known = try fixture.packets()
    let video = try #require(tracks.first)
    #expect(samples[video.id]?.count == known[pids[0]]?.count)
    // One constant for all presentation times, within a tick of 90 kHz and the rounding of the track's own ticks.
    let begins = samples[video.id]?.first.map { Double($0.presentationTime) / Double(video.timescale) } ?? 0
    let shift = begins - Double(known[pids[0]]?.first?.presentation ?? 0) / 90_000
    for (track, pid) in zip(tracks, pids) {
      let own = samples[track.id] ?? []
      // Audio before the first frame of the video is left out.
      let packets = (known[pid] ?? []).suffix(own.count)
      for (sample, packet) in zip(own, packets) {
        let found = Double(sample.presentationTime) / Double(track.timescale)
        #expect(abs(found - Double(packet.presentation) / 90_000 - shift) < 1.7 / 90_000, "\(track.id) \(packet)")
      }
    }
    let lost = actions.count { if case .lost = $0 { true } else { false } }
    let early = actions.count { if case .inBand(.early) = $0 { true } else { false } }
    #expect(lost == 0)
    #expect(early == pids.reduce(0) { $0 + (known[$1]?.count ?? 0) } - samples.values.reduce(0) { $0 + $1.count })
  }

  @Test func `A track in a codec that weir does not take costs that track alone`() throws {
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(1, pid: 32)]))
    script.add(table: 32, TransportScript.map(1, [(type: 0x0F, pid: 256, more: []), (type: 0x8A, pid: 257, more: [])]))
    var publication = TransportPublication(reading: ClockReading(wall: 0, monotonic: 0))
    var actions: [PublicationAction] = []
    try publication.receive(ByteBuffer(bytes: script.bytes + script.bytes), now: 0, to: &actions)
    let warnings = actions.compactMap { action -> PublicationWarning? in
      if case .warn(let warning) = action { warning } else { nil }
    }
    #expect(warnings.contains(.leftOutCodec(.audio, "DTS")))
  }
}

import FMP4
import NIOCore
import Support
import Testing

@Suite struct FragmentDemuxerTests {
  private struct Written {
    var bytes: [UInt8] = []
    var tracks: [TrackDescription]
    var sent: [Sample]
  }

  /// What weir itself writes of a stream: init segment and interleaved fragments.
  private func written(_ seconds: Int = 3, tracks: [TrackDescription]? = nil, offset: Int32 = 2000) throws -> Written {
    let tracks = try tracks ?? [SyntheticMedia.video(), SyntheticMedia.audio()]
    let sent = SyntheticMedia.interleaved(seconds: seconds, offset: offset).filter { sample in
      tracks.contains { $0.id == sample.track }
    }
    var segmenter = Segmenter(policy: CutPolicy())
    var events = segmenter.receive(.tracks(tracks))
    for sample in sent { events += segmenter.receive(.sample(sample)) }
    events += segmenter.receive(.end(.finished))
    var written = Written(tracks: tracks, sent: sent)
    for event in events {
      switch event {
      case .initialization(let segment): written.bytes += segment.whole.readableBytesView
      case .fragment(let fragment):
        written.bytes += FragmentBoxes.interleavedHead(of: fragment, clock: nil).readableBytesView
        for payload in fragment.payloads { written.bytes += payload.readableBytesView }
      default: break
      }
    }
    return written
  }

  /// All events of bytes that come in pieces of a size.
  private func events(_ bytes: [UInt8], pieces: Int = .max) throws -> [MediaEvent] {
    var demuxer = FragmentDemuxer()
    var events: [MediaEvent] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      demuxer.receive(ByteBuffer(bytes: rest.prefix(pieces)))
      rest = rest.dropFirst(pieces)
      while let event = try demuxer.next() { events.append(event) }
    }
    try demuxer.end()
    return events
  }

  private func samples(_ events: [MediaEvent], of track: TrackID? = nil) -> [Sample] {
    events.compactMap {
      if case .sample(let sample) = $0, track == nil || sample.track == track { sample } else { nil }
    }
  }

  private func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
    let size = UInt32(payload.count + 8)
    return (0..<4).map { UInt8(truncatingIfNeeded: size >> (24 - 8 * $0)) } + Array(type.utf8) + payload
  }

  @Test(arguments: [1, 7, 1000, Int.max])
  func whatWasWrittenComesBack(pieces: Int) throws {
    let written = try written()
    let events = try events(written.bytes, pieces: pieces)
    guard case .tracks(let tracks) = events.first else {
      Issue.record("the tracks come first")
      return
    }
    #expect(tracks.map(\.id) == written.tracks.map(\.id) && tracks.map(\.codec) == written.tracks.map(\.codec))
    #expect(tracks.map(\.timescale) == written.tracks.map(\.timescale))
    for track in tracks {
      let (found, sent) = (samples(events, of: track.id), written.sent.filter { $0.track == track.id })
      #expect(found.map(\.decodeTime) == sent.map(\.decodeTime))
      #expect(found.map(\.presentationTime) == sent.map(\.presentationTime))
      #expect(found.map(\.isSync) == sent.map(\.isSync))
      #expect(found.map(\.payload) == sent.map(\.payload))
    }
  }

  @Test func aSampleComesWithItsLastByte() throws {
    let written = try written(1)
    var demuxer = FragmentDemuxer()
    var came: [Int] = []
    for (index, byte) in written.bytes.enumerated() {
      demuxer.receive(ByteBuffer(bytes: [byte]))
      while let event = try demuxer.next() { if case .sample = event { came.append(index) } }
    }
    #expect(came.count == written.sent.count)
    #expect(zip(came, came.dropFirst()).allSatisfy { $0 < $1 }, "no two with the same byte")
  }

  @Test func otherBoxesArePassedAndTheSameTracksToldOnce() throws {
    let written = try written(1)
    let first = try #require(events(written.bytes).first)
    guard case .tracks = first else {
      Issue.record("no tracks")
      return
    }
    let initLength = try #require(
      written.bytes.indices.first { Array(written.bytes[$0...].prefix(8).suffix(4)) == Array("moof".utf8) })
    let head = Array(written.bytes[..<initLength])
    let bytes = box("free", [1, 2, 3]) + written.bytes + box("emsg", Array(repeating: 0, count: 90_000)) + head
    let found = try events(bytes)
    #expect(found.count { if case .tracks = $0 { true } else { false } } == 1)
    #expect(samples(found).count == written.sent.count)
    // Another set of tracks is told.
    let audio = try self.written(1, tracks: [SyntheticMedia.audio()])
    let changed = try events(written.bytes + audio.bytes)
    #expect(changed.count { if case .tracks = $0 { true } else { false } } == 2)
  }

  @Test func aTrackThatIsNotKnownIsLeftOut() throws {
    var written = try written(1)
    // The sample entry of the audio becomes one of subtitles.
    let entry = try #require(
      written.bytes.indices.first { Array(written.bytes[$0...].prefix(4)) == Array("mp4a".utf8) })
    written.bytes.replaceSubrange(entry..<entry + 4, with: Array("wvtt".utf8))
    var demuxer = FragmentDemuxer()
    demuxer.receive(ByteBuffer(bytes: written.bytes))
    var found: [MediaEvent] = []
    while let event = try demuxer.next() { found.append(event) }
    try demuxer.end()
    #expect(demuxer.tracks.map(\.id) == [.video] && demuxer.leftOut.count == 1)
    #expect("\(demuxer.leftOut)".contains("wvtt"), "\(demuxer.leftOut)")
    #expect(samples(found).map(\.payload) == written.sent.filter { $0.track == .video }.map(\.payload))
  }

  @Test func whatIsWrongIsSaidWithBoxAndPlace() throws {
    let written = try written(1)
    let moof = try #require(
      written.bytes.indices.first { Array(written.bytes[$0...].prefix(8).suffix(4)) == Array("moof".utf8) })
    func failure(_ bytes: [UInt8]) -> String {
      do {
        _ = try events(bytes)
        return "none"
      } catch {
        return "\(error)"
      }
    }
    #expect(failure(Array(written.bytes[moof...])).hasPrefix("moof at byte 0: there is no moov"))
    #expect(
      failure(Array(written.bytes[..<moof]) + [0, 0, 0, 4] + Array("moof".utf8)).contains("moof at byte \(moof)"))
    #expect(failure([0x7F, 0, 0, 0] + Array("moov".utf8)).contains("moov at byte 0: it has 2130706432 bytes"))
    #expect(failure(box("moov", [])).contains("moov at byte 0: it has no trak"))
    // A fragment whose media never comes, and one that ends too early.
    let head = Array(written.bytes[..<moof])
    let size = Int(written.bytes[moof + 2]) << 8 | Int(written.bytes[moof + 3])
    let fragment = Array(written.bytes[moof..<moof + size])
    #expect(failure(head + fragment + fragment).contains("moof at byte \(moof + size)"))
    #expect(failure(head + fragment + box("mdat", [1])).contains("mdat at byte"))
    #expect(failure(Array(written.bytes.dropLast())).contains("ends"))
  }

  @Test func theLastMediaMayGoOnToTheEndOfAll() throws {
    var written = try written(1)
    let last = try #require(
      written.bytes.indices.last { Array(written.bytes[$0...].prefix(8).suffix(4)) == Array("mdat".utf8) })
    written.bytes.replaceSubrange(last..<last + 4, with: [0, 0, 0, 0])
    #expect(samples(try events(written.bytes, pieces: 100)).count == written.sent.count)
  }

  @Test func afterAnErrorNothingIsRead() throws {
    let good = try written(1).bytes
    for wrong in [Array("GET / HTTP/1.1\r\n\r\n".utf8), box("moov", []), [0, 0, 0, 0] + Array("free".utf8)] {
      var demuxer = FragmentDemuxer()
      demuxer.receive(ByteBuffer(bytes: wrong))
      #expect(throws: BoxError.self) { try demuxer.next() }
      demuxer.receive(ByteBuffer(bytes: good))
      #expect(throws: BoxError.self) { try demuxer.next() }
      #expect(throws: BoxError.self) { try demuxer.end() }
    }
  }

  /// A few bytes may say many samples: 65,536 without a byte would cost time and nothing else, again and again.
  @Test(arguments: [(UInt32(16_385), UInt32(1)), (1, 0)]) func samplesAreBounded(count: UInt32, size: UInt32) throws {
    let bytes = try written(1).bytes
    let moof = try #require(
      bytes.indices.first { Array(bytes[$0...].prefix(8).suffix(4)) == Array("moof".utf8) })
    func u32(_ value: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) } }
    let header = box("tfhd", u32(0x02_0010) + u32(1) + u32(size))
    let run = box("trun", u32(0) + u32(count))
    let fragment = box("moof", box("traf", header + box("tfdt", u32(0) + u32(0)) + run))
    #expect(throws: BoxError.self) { try events(Array(bytes[..<moof]) + fragment) }
  }

  @Test func noByteMakesItTrap() throws {
    let written = try written(1)
    let length = min(written.bytes.count, 3000)
    for index in 0..<length {
      for value: UInt8 in [0, 1, 0x7F, 0x80, 0xFF] {
        var bytes = Array(written.bytes[..<length])
        bytes[index] = value
        _ = try? events(bytes, pieces: 512)
      }
    }
  }
}

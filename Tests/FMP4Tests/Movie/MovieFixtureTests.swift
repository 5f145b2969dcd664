@testable import FMP4
import NIOCore
import RecordingFormat
import Support
import Testing

@Suite("MP4 files of other programs")
struct MovieFixtureTests {
  private func buffer(_ fixture: MovieFixture) throws -> ByteBuffer {
    ByteBuffer(bytes: try Fixtures.bytes("mp4/\(fixture.name)"))
  }

  private func shape(_ track: TrackDescription) -> [Int] {
    if let size = track.codec.codedSize { return [size.width, size.height] }
    return track.codec.audio.map { [Int($0.sampleRate), $0.channels] } ?? []
  }

  private func expect(_ tracks: [TrackDescription], of fixture: MovieFixture) {
    #expect(tracks.map(\.codec.id) == fixture.tracks.map(\.codec))
    #expect(tracks.map(shape) == fixture.tracks.map(\.shape))
    #expect(tracks.map(\.timescale) == fixture.tracks.map(\.timescale))
  }

  // MARK: Fragmented

  private func demux(_ name: String, _ arrival: Fixtures.Arrival = .whole) throws -> (FragmentDemuxer, [MediaEvent]) {
    var demuxer = FragmentDemuxer()
    var events: [MediaEvent] = []
    for piece in arrival.pieces(of: try Fixtures.bytes("mp4/\(name)")) {
      demuxer.receive(piece)
      while let event = try demuxer.next() { events.append(event) }
    }
    try demuxer.end()
    return (demuxer, events)
  }

  private func samples(_ events: [MediaEvent], of track: TrackID? = nil) -> [Sample] {
    events.compactMap {
      if case .sample(let sample) = $0, track == nil || sample.track == track { sample } else { nil }
    }
  }

  @Test(arguments: MovieFixture.fragmented)
  func `A fragmented file has the tracks and samples that ffprobe finds`(_ fixture: MovieFixture) throws {
    let (demuxer, events) = try demux(fixture.name)
    let bytes = try Fixtures.bytes("mp4/\(fixture.name)")
    expect(demuxer.tracks, of: fixture)
    #expect(demuxer.leftOut.isEmpty)
    for (track, known) in zip(demuxer.tracks, fixture.tracks) {
      let found = samples(events, of: track.id)
      #expect(found.count == known.samples && found.count(where: \.isSync) == known.keys)
      let first = try #require(found.first)
      let last = try #require(found.last)
      #expect(first.presentationTime == known.shown)
      #expect(last.decodeTime + Int64(try #require(last.duration)) - first.decodeTime == known.length)
      let key = try #require(found.last { $0.isSync })
      let place = Int(known.lastKey.offset)
      #expect(Array(key.payload.readableBytesView) == Array(bytes[place..<place + known.lastKey.size]))
    }
  }

  @Test(arguments: MovieFixture.fragmented)
  func `A fragmented file is the same in pieces of any size`(_ fixture: MovieFixture) throws {
    func text(_ sample: Sample) -> String { "\(sample)" }
    let whole = samples(try demux(fixture.name).1)
    for arrival in Fixtures.Arrival.allCases where arrival != .whole {
      let found = samples(try demux(fixture.name, arrival).1)
      #expect(found.map(text) == whole.map(text), "\(arrival)")
      #expect(found.map(\.payload) == whole.map(\.payload), "\(arrival)")
    }
  }

  @Test(arguments: MovieFixture.fragmented)
  func `A fragmented file cut anywhere gives the samples before the cut`(_ fixture: MovieFixture) throws {
    let bytes = try Fixtures.bytes("mp4/\(fixture.name)")
    let whole = samples(try demux(fixture.name).1).map(\.payload)
    for end in stride(from: 1000, to: bytes.count, by: 997) {
      var demuxer = FragmentDemuxer()
      demuxer.receive(ByteBuffer(bytes: bytes[..<end]))
      var found: [ByteBuffer] = []
      while let event = try demuxer.next() { if case .sample(let sample) = event { found.append(sample.payload) } }
      #expect(found == Array(whole.prefix(found.count)), "cut at byte \(end)")
    }
  }

  @Test func `An encrypted track is named as what is left out`() throws {
    let failure = #expect(throws: BoxError.self) { try demux("packager-3.8-cenc-audio.mp4") }
    #expect("\(try #require(failure))".contains("enca"))
  }

  // MARK: Finished

  private func movie(_ file: ByteBuffer) throws -> BoxView {
    try #require(BoxReader(file).first { $0.type == "moov" })
  }

  @Test(arguments: MovieFixture.finished)
  func `A finished file has the tracks and samples that ffprobe finds`(_ fixture: MovieFixture) throws {
    let movie = try movie(try buffer(fixture))
    let (tracks, kind) = try MovieReader.read(movie)
    #expect(kind == .finished)
    expect(tracks, of: fixture)
    let boxes = movie.boxes().filter { $0.type == "trak" }
    for (box, known) in zip(boxes, fixture.tracks) {
      let table = try SampleTableReader(try box.child("mdia", "minf", "stbl"))
      #expect(table.sampleCount == known.samples)
      #expect((table.syncSamples?.count ?? table.sampleCount) == known.keys)
      #expect(table.durations.reduce(0) { $0 + $1.0 * $1.1 } == UInt64(known.length))
    }
    #expect(try MovieSummary(movie).samples == fixture.tracks.reduce(0) { $0 + $1.samples })
    #expect(abs(try MovieSummary(movie).seconds - fixture.seconds) < 0.5)
  }

  /// Their sound descriptions have another layout than an MP4 file's (QuickTime File Format, "Sound Sample Descriptions").
  @Test(arguments: ["ffmpeg-9.0-quicktime.mov", "gstreamer-1.22-qtmux.mov"])
  func `A QuickTime file with audio is refused with what it lacks`(_ name: String) throws {
    let movie = try movie(ByteBuffer(bytes: try Fixtures.bytes("mp4/\(name)")))
    let failure = #expect(throws: BoxError.self) { try MovieReader.read(movie) }
    #expect("\(try #require(failure))".contains("a sample entry mp4a without esds"))
  }

  @Test(arguments: MovieFixture.finished)
  func `The last key frame of a finished file lies where ffprobe finds it`(_ fixture: MovieFixture) throws {
    guard let known = fixture.tracks.first(where: { $0.codec.kind == .video }) else { return }
    let file = try buffer(fixture)
    let key = try MovieKeyFrame(in: try movie(file), near: 1)
    #expect(key.offset == known.lastKey.offset && key.length == known.lastKey.size)
    let payload = try #require(file.getSlice(at: Int(key.offset), length: key.length))
    #expect(try key.track.codec.accessUnit(payload)?.isSync == true)
  }

  @Test(arguments: MovieFixture.finished + MovieFixture.fragmented)
  func `The outline of a file names its codecs from a few pages`(_ fixture: MovieFixture) throws {
    let file = try buffer(fixture)
    var outline = MovieOutline(fileSize: UInt64(file.readableBytes))
    var steps = 0
    while case .read(let offset, let length) = outline.step, steps < 1000 {
      steps += 1
      outline.receive(try #require(file.getSlice(at: Int(offset), length: length)))
    }
    #expect(outline.step == .finished && steps < 40)
    let movie = try movie(file)
    #expect(outline.codecs == (try MovieReader.read(movie).tracks.map(\.codec.codecString)))
    #expect(outline.duration == (try MovieReader.duration(try movie.child("mvhd"))))
  }

  @Test(arguments: MovieFixture.finished + MovieFixture.fragmented)
  func `The scanner of recordings tells files of both kinds apart`(_ fixture: MovieFixture) throws {
    let file = try buffer(fixture)
    var scanner = RecordingScanner(fileSize: UInt64(file.readableBytes))
    var steps = 0
    while case .read(let offset, let length) = scanner.step, steps < 2 * file.readableBytes {
      steps += 1
      scanner.receive(try #require(file.getSlice(at: Int(offset), length: length)))
    }
    switch scanner.content {
    case .finished: #expect(MovieFixture.finished.contains { $0.name == fixture.name })
    case .fragmented(let tables, _):
      #expect(MovieFixture.fragmented.contains { $0.name == fixture.name })
      #expect(tables.sampleCount == fixture.tracks.reduce(0) { $0 + $1.samples })
    case .mixed, .unknown: Issue.record("\(scanner.content)")
    }
  }
}

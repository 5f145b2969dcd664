import FMP4
import NIOCore
import Publishing
@testable import RTMP
import Support
import Testing

@Suite("RTMP sessions of other programs")
struct PublisherFixtureTests {
  /// What weir warns of: video that the relay announces and does not pass on.
  private static let warnings: [String: [PublicationWarning]] = ["nginx-rtmp-1.2.2-relay-hevc": [.neverCame(.video)]]

  /// The session of a fixture whose bytes arrive in that way. Two seconds later the waits for tracks are over.
  private func session(_ fixture: PublisherFixture, _ arrival: Fixtures.Arrival = .whole) throws -> SessionDriver {
    var driver = SessionDriver()
    for piece in arrival.pieces(of: try Fixtures.bytes("rtmp/\(fixture.name).rtmp")) {
      driver.feed(Array(piece.readableBytesView))
    }
    driver.tick(2_500_000_000)
    return driver
  }

  private func milliseconds(_ time: Int64, _ track: TrackDescription) -> Double {
    Double(time) * 1000 / Double(track.timescale)
  }

  @Test(arguments: PublisherFixture.all)
  func `A captured session publishes its stream by name`(_ fixture: PublisherFixture) throws {
    let driver = try session(fixture)
    #expect(driver.asked.map(\.stream.description) == [fixture.name])
    #expect(driver.asked.first?.key?.matches(Secret("s3cret")) == (fixture.name.hasSuffix("-key") ? true : nil))
    let codes = try driver.codes()
    #expect(codes.first == "NetConnection.Connect.Success")
    // Once in answer to FCPublish, where it was sent, and once in answer to publish.
    #expect(codes.dropFirst().prefix { $0 == "NetStream.Publish.Start" }.count >= 1)
    #expect(driver.endings.isEmpty && driver.lost == 0, "\(driver.logs)")
    #expect(driver.warnings == Self.warnings[fixture.name, default: []])
  }

  @Test(arguments: PublisherFixture.all)
  func `A captured session has the tracks that ffprobe finds`(_ fixture: PublisherFixture) throws {
    let tracks = try #require(try session(fixture).tracks.last)
    #expect(tracks.count == fixture.audio.count + (fixture.video == nil ? 0 : 1))
    let video = tracks.first(.video)
    #expect(video?.codec.id == fixture.video?.codec)
    #expect(video?.codec.codedSize?.width == fixture.video?.width)
    #expect(video?.codec.codedSize?.height == fixture.video?.height)
    let audio = tracks.filter { $0.kind == .audio }
    #expect(audio.map(\.codec.id) == fixture.audio.map(\.codec))
    #expect(audio.map { $0.codec.audio?.sampleRate } == fixture.audio.map(\.sampleRate))
    #expect(audio.map { $0.codec.audio?.channels } == fixture.audio.map(\.channels))
  }

  @Test(arguments: PublisherFixture.all)
  func `A captured session has the samples that ffprobe counts`(_ fixture: PublisherFixture) throws {
    let driver = try session(fixture)
    let tracks = try #require(driver.tracks.last)
    func samples(_ track: TrackDescription) -> [Sample] { driver.samples.filter { $0.track == track.id } }
    if let video = tracks.first(.video) {
      #expect(samples(video).count == fixture.video?.samples)
      #expect(samples(video).count(where: \.isSync) == fixture.video?.keys)
    }
    #expect(tracks.filter { $0.kind == .audio }.map { samples($0).count } == fixture.audio.map(\.samples))
  }

  /// The publication's clock begins with its earliest sample, and frames are laid on their grid: what stays is the distance
  /// between the tracks.
  @Test(arguments: PublisherFixture.all)
  func `The tracks of a captured session begin as far apart as ffprobe says`(_ fixture: PublisherFixture) throws {
    let driver = try session(fixture)
    let tracks = try #require(driver.tracks.last)
    func first(_ track: TrackDescription) throws -> Sample {
      try #require(driver.samples.first { $0.track == track.id })
    }
    var begins: [Double] = []
    var expected: [Double] = []
    if let video = tracks.first(.video), let known = fixture.video {
      let sample = try first(video)
      begins += [milliseconds(sample.decodeTime, video), milliseconds(sample.presentationTime, video)]
      expected += [Double(known.decode), Double(known.shown)]
    }
    for (track, known) in zip(tracks.filter { $0.kind == .audio }, fixture.audio) {
      begins.append(milliseconds(try first(track).decodeTime, track))
      expected.append(Double(known.first))
    }
    let shift = (begins.first ?? 0) - (expected.first ?? 0)
    for (found, known) in zip(begins, expected) { #expect(abs(found - known - shift) <= 2, "\(begins) \(expected)") }
    #expect(driver.samples.map(\.decodeTime).min() == 0)
    for track in tracks {
      #expect(zip(driver.times(track.id), driver.times(track.id).dropFirst()).allSatisfy { $0 < $1 })
    }
  }

  @Test(arguments: PublisherFixture.all)
  func `A captured session is the same in pieces of any size`(_ fixture: PublisherFixture) throws {
    let whole = try session(fixture)
    for arrival in Fixtures.Arrival.allCases where arrival != .whole {
      let driver = try session(fixture, arrival)
      #expect(driver.transcript == whole.transcript, "\(arrival)")
      #expect(driver.asked == whole.asked && driver.logs == whole.logs, "\(arrival)")
      #expect(try driver.codes() == whole.codes(), "\(arrival)")
    }
  }

  @Test func `A publisher that ends its stream is seen to end it`() throws {
    let fixture = try #require(PublisherFixture.all.first { $0.name.hasSuffix("short-session") })
    #expect(try session(fixture).ending == .finished)
  }
}

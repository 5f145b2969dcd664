import Base
import FMP4
import NIOCore
import NIOEmbedded
import Publishing
import Support
import Synchronization
import Testing
@testable import WebRTC

/// The videos and the audio of a stream on their way to viewers by WebRTC.
@Suite struct StreamRelayTests {
  /// A stream whose events the test makes.
  private final class Stream: WatchedStream {
    let name: StreamName
    let followers = Mutex<[any SampleFollower]>([])

    /// Whether its publisher makes key frames as it is asked, and how often it was asked.
    let makesKeyFrames: Bool
    let requests = Mutex(0)

    init(_ name: StreamName, makesKeyFrames: Bool) { (self.name, self.makesKeyFrames) = (name, makesKeyFrames) }
    func follow(_ follower: any SampleFollower) -> Bool {
      followers.withLock { $0.append(follower) }
      return true
    }
    func unfollow(_ follower: any SampleFollower) { followers.withLock { $0.removeAll { $0 === follower } } }
    let uses = Mutex<[Set<TrackID>]>([])
    func use(_ tracks: Set<TrackID>) { uses.withLock { $0.append(tracks) } }
    func askForKeyFrame() -> Bool {
      requests.withLock { $0 += 1 }
      return makesKeyFrames
    }
    func send(_ event: MediaEvent) { for follower in followers.withLock({ $0 }) { follower.receive(event) } }
  }

  private final class Viewer: RelayViewer {
    var checks = 0
    var end: String?
    var tracks: [TrackID] = []
    var isBehind: Bool { false }
    func serve(_ now: MonotonicTime) -> WebRTCPath? { nil }
    func tick(_ now: MonotonicTime) {}
    func check(_ now: MonotonicTime) { checks += 1 }
    func end(because reason: String) { end = reason }
  }

  private struct Setup {
    let loop = EmbeddedEventLoop()
    let viewer = Viewer()
    let stream: Stream
    let relay: StreamRelay

    init(makesKeyFrames: Bool = false) throws {
      stream = Stream(try #require(StreamName("cam")), makesKeyFrames: makesKeyFrames)
      relay = StreamRelay(stream, on: loop, clock: .system(), room: { 1 << 20 }, whenUnused: { _ in })
      try #require(relay.add(viewer))
      loop.run()
    }

    func send(_ events: MediaEvent...) {
      for event in events { stream.send(event) }
      loop.run()
    }
  }

  private static let rung = TrackID(.max - 2)

  private static func tracks() throws -> (own: [TrackDescription], all: [TrackDescription]) {
    let own = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    var made = try SyntheticMedia.video()
    made.id = rung
    return (own, own + [made])
  }

  private static func frame(_ index: Int, of track: TrackID = .video, offset: Int32 = 0) -> MediaEvent {
    var sample = SyntheticMedia.frame(index, group: 10, offset: offset)
    // A NAL unit behind its length.
    sample.payload = ByteBuffer(bytes: [0, 0, 0, 3, 0x65, 1, 2])
    sample.track = track
    return .sample(sample)
  }

  @Test func `Each video has packets of its own, the publication's first`() throws {
    let (setup, tracks) = (try Setup(), try Self.tracks())
    setup.send(.tracks(tracks.own), Self.frame(0), Self.frame(1))
    #expect(setup.relay.videos.map(\.id) == [.video])
    let kept = setup.relay.video(.video)?.log.end
    setup.send(.tracks(tracks.all), Self.frame(0, of: Self.rung), Self.frame(2))
    #expect(setup.relay.videos.map(\.id) == [.video, Self.rung] && setup.viewer.checks == 2)
    #expect(setup.relay.video(.video)?.log.start == 0 && setup.relay.video(.video)?.log.end == kept.map { $0 + 1 })
    #expect(setup.relay.video(Self.rung)?.log.keyFrame == 0)
    // AAC is no audio that viewers get; it is there to be told.
    #expect(setup.relay.audio?.isSent == false && setup.relay.audio?.coding == .aac)
  }

  @Test func `B-frames end the packets of that video alone, and its viewers are told`() throws {
    let (setup, tracks) = (try Setup(), try Self.tracks())
    setup.send(.tracks(tracks.all), Self.frame(0), Self.frame(0, of: Self.rung))
    let before = setup.viewer.checks
    setup.send(Self.frame(1, offset: 3000), Self.frame(2), Self.frame(3), Self.frame(1, of: Self.rung))
    let own = try #require(setup.relay.video(.video))
    #expect(own.isReordered && !own.isSent && own.log.newest?.frame == 1)
    #expect(setup.viewer.checks == before + 1, "once")
    #expect(setup.relay.video(Self.rung)?.isSent == true && setup.relay.video(Self.rung)?.log.newest?.frame == 1)
    // Another publisher may have none.
    setup.send(.discontinuity)
    #expect(own.isSent)
  }

  @Test func `A track has stopped after four seconds without media, and is fresh for one`() throws {
    func after(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }
    let track = RelayTrack(try SyntheticMedia.video(), now: .zero)
    #expect(!track.hasStopped(after(3999)) && !track.isFresh(.zero), "nothing has come yet")
    #expect(track.hasStopped(after(4000)) && !track.isGone(after(9999)) && track.isGone(after(10_000)))
    guard case .sample(let sample) = Self.frame(0) else { return }
    track.add(sample, at: 0, now: after(20_000))
    #expect(track.isFresh(after(21_000)) && !track.isFresh(after(21_001)))
    #expect(!track.hasStopped(after(23_999)) && track.hasStopped(after(24_000)))
    // Without its packets it has come all the same, and stops all the same.
    track.clear()
    #expect(track.log.newest == nil && track.isFresh(after(21_000)) && track.hasStopped(after(24_000)))
    #expect(!track.isGone(after(29_999)) && track.isGone(after(30_000)))
  }

  /// Else viewers of what is made of it would be ended with its first frame after a pause, which its encoder still works on.
  @Test func `A track that comes again after it had stopped has not gone on before ten seconds have passed`() throws {
    let track = RelayTrack(try SyntheticMedia.video(), now: .zero)
    guard case .sample(let sample) = Self.frame(0) else { return }
    func hasGoneOn(at milliseconds: Int64) -> Bool {
      let now = MonotonicTime(nanoseconds: milliseconds * 1_000_000)
      track.add(sample, at: 0, now: now)
      return track.hasGoneOn(now)
    }
    #expect(!hasGoneOn(at: 0) && !hasGoneOn(at: 3500) && !hasGoneOn(at: 7000) && hasGoneOn(at: 10_000))
    #expect(hasGoneOn(at: 13_999), "a shorter pause is none")
    #expect(!hasGoneOn(at: 18_000) && !hasGoneOn(at: 21_500) && !hasGoneOn(at: 25_000) && hasGoneOn(at: 28_000))
  }

  @Test func `The stream is told each second which tracks its viewers get`() throws {
    let setup = try Setup()
    let other = Viewer()
    try #require(setup.relay.add(other))
    (setup.viewer.tracks, other.tracks) = ([.video, .audio], [Self.rung, .audio])
    setup.loop.advanceTime(by: .milliseconds(300))
    #expect(setup.stream.uses.withLock { $0 } == [[.video, .audio, Self.rung]], "once a second, by the clock")
    setup.relay.remove(other)
    setup.relay.remove(setup.viewer)
    setup.loop.advanceTime(by: .milliseconds(300))
    #expect(setup.stream.uses.withLock { $0.count } == 1)
  }

  @Test func `A video in another codec begins anew, and the end is told`() throws {
    let (setup, tracks) = (try Setup(), try Self.tracks())
    setup.send(.tracks(tracks.all), Self.frame(0), Self.frame(0, of: Self.rung))
    setup.send(.tracks([try SyntheticMedia.av1()] + tracks.all.dropFirst()))
    #expect(setup.relay.video(.video)?.log.end == 0 && setup.relay.video(Self.rung)?.log.end != 0)
    setup.send(.end(.finished))
    #expect(setup.viewer.end?.hasPrefix("the stream has ended") == true)
    setup.relay.remove(setup.viewer)
    #expect(setup.relay.videos.isEmpty && setup.stream.followers.withLock { $0.isEmpty })
  }

  // MARK: requests for key frames

  private final class Place: WatchingPlace {
    func connected() -> Bool { true }
    func whenRevoked(_ end: @escaping @Sendable () -> Void) {}
  }

  /// Viewers as their offers make them. None is connected: what they report is handed to them in clear.
  private static func viewers(_ count: Int, of setup: Setup) throws -> [WebRTCViewer] {
    let hub = WebRTCHub(
      WebRTCHub.Shared(
        gate: RecordingGate(), clock: .system(), logger: .silent, configuration: WebRTCConfiguration(),
        connections: ConnectionRegistry(limits: PeerLimits()), identity: try #require(DTLSIdentity())), on: setup.loop)
    let watched = WatchedMedia(
      stream: setup.stream, tracks: [try SyntheticMedia.video()], isReordered: false, place: Place(),
      mayWatch: { true })
    let text = OfferTests.offer(OfferTests.audio, OfferTests.video).replacing("sendonly", with: "recvonly")
    return try (0..<count).map { _ in
      let negotiation = try ViewerNegotiation(try SessionOffer(text), of: watched)
      let viewer = try #require(WebRTCViewer(negotiation, watched, setup.relay, peer: "192.0.2.7", in: hub))
      try #require(viewer.begin())
      return viewer
    }
  }

  /// Twenty viewers that lost their picture ask a hundred times a second, for three seconds. One that makes no key frames could make
  /// them later, so it is asked as often.
  @Test(arguments: [true, false])
  func `However often viewers ask, the publisher is asked for a key frame twice a second`(makesKeyFrames: Bool) throws {
    let setup = try Setup(makesKeyFrames: makesKeyFrames)
    let viewers = try Self.viewers(20, of: setup)
    setup.send(.tracks(try Self.tracks().own), Self.frame(0))
    var request = RTCPWriter()
    request.keyFrame(of: try #require(setup.relay.sources[.video]))
    var other = RTCPWriter()
    other.keyFrame(of: try #require(setup.relay.sources[.audio]))
    var asked: [Int64] = []
    for milliseconds in stride(from: Int64(0), to: 3000, by: 10) {
      let now = MonotonicTime(nanoseconds: (7000 + milliseconds) * 1_000_000)
      let before = setup.stream.requests.withLock { $0 }
      for viewer in viewers {
        // Not the video's.
        viewer.receive(rtcp: other.bytes, now: now)
        viewer.receive(rtcp: request.bytes, now: now)
      }
      let count = setup.stream.requests.withLock { $0 } - before
      asked += [Int64](repeating: milliseconds, count: count)
    }
    #expect(asked == [0, 500, 1000, 1500, 2000, 2500])
    #expect(WebRTCLimits.keyFramePause == 500_000_000, "docs/limits.md says twice a second")
    for viewer in viewers { viewer.finish() }
  }
}

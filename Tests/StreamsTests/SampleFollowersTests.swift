import Base
import FMP4
import Logging
import NIOCore
import NIOPosix
import Publishing
@testable import Streams
import Support
import Synchronization
import Testing
import Transcode

/// Those who get samples before they are cut.
@Suite struct SampleFollowersTests {
  private final class Follower: SampleFollower {
    let events = Mutex<[MediaEvent]>([])
    func receive(_ event: MediaEvent) { events.withLock { $0.append(event) } }

    /// The codecs of the newest tracks.
    var codecs: [CodecID] {
      events.withLock { events in
        events.reversed().lazy.compactMap { if case .tracks(let tracks) = $0 { tracks.map(\.codec.id) } else { nil } }
          .first ?? []
      }
    }

    var samples: Int { events.withLock { $0.count { if case .sample = $0 { true } else { false } } } }
  }

  private static func begun() throws -> SampleFollowers {
    var followers = SampleFollowers()
    followers.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    return followers
  }

  @Test func `Who follows gets the tracks at once, then each sample until it leaves`() throws {
    var followers = try Self.begun()
    let follower = Follower()
    followers.add(follower)
    #expect(follower.codecs == [.h264, .aac])
    for index in 0..<3 { followers.receive(.sample(SyntheticMedia.frame(index))) }
    followers.remove(follower)
    followers.receive(.sample(SyntheticMedia.frame(3)))
    #expect(follower.samples == 3)
  }

  @Test func `Frames that are shown in another order are noticed, uneven offsets are none`() throws {
    var followers = try Self.begun()
    for (index, offset) in [Int32(0), 400, 0, 999].enumerated() {
      followers.receive(.sample(SyntheticMedia.frame(index, offset: offset)))
    }
    #expect(!followers.isReordered)
    followers.receive(.sample(SyntheticMedia.frame(4, offset: 3000)))
    followers.receive(.sample(SyntheticMedia.frame(5, offset: 0)))
    #expect(followers.isReordered)
    // Another publication.
    followers.receive(.tracks([try SyntheticMedia.video()]))
    #expect(!followers.isReordered)
  }

  /// A track as a transcoder tells it.
  private static var rung: TrackDescription { get throws { try SyntheticMedia.video() } }

  @Test func `Rungs of the ladder follow the publication's own tracks, under names of their own`() throws {
    var followers = try Self.begun()
    let follower = Follower()
    followers.add(follower)
    followers.receive([.track(rung: 1, try Self.rung), .track(rung: 0, try Self.rung)], of: .ladder)
    #expect(follower.codecs == [.h264, .aac, .h264, .h264] && followers.hasRungs && !followers.isMakingVideo)
    let ids = followers.tracks.map(\.id)
    #expect(Set(ids).count == 4 && ids.prefix(2) == [.video, .audio])
    followers.receive([.frame(rung: 1, SyntheticMedia.frame(0)), .lost(before: .zero)], of: .ladder)
    #expect(follower.samples == 1)
    // Told again, it is the same one.
    followers.receive([.track(rung: 1, try Self.rung)], of: .ladder)
    #expect(Set(followers.tracks.map(\.id)) == Set(ids))
    // Without its video there is none.
    followers.receive(.tracks([try SyntheticMedia.audio()]))
    #expect(followers.tracks.map(\.codec.id) == [.aac])
    followers.receive([.track(rung: 1, try Self.rung)], of: .ladder)
    #expect(!followers.hasRungs)
  }

  @Test func `Who waits for a rung is told when it is there, when it does not come, and at the end`() async throws {
    var followers = try Self.begun()
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let (first, second) = (followers.wait(on: loop), followers.wait(on: loop))
    followers.giveUp(first.number)
    try await first.future.get()
    followers.receive([.track(rung: 0, try Self.rung)], of: .followers(1))
    #expect(!followers.hasRungs, "nobody wants it any more")
    followers.receive([.track(rung: 0, try Self.rung)], of: .ladder)
    try await second.future.get()
    let third = followers.wait(on: loop)
    followers.receive(.end(.finished))
    try await third.future.get()
    #expect(followers.tracks.isEmpty)
  }

  @Test func `Opus takes the place of other audio while somebody follows`() throws {
    var followers = try Self.begun()
    let follower = Follower()
    followers.add(follower)
    followers.takeOpusOfRung()
    #expect(follower.codecs == [.h264, .opus] && followers.isMaking)
    let made = try #require(followers.tracks.first(.audio))
    #expect(made.id != .audio && made.id != .video && made.timescale == 48_000)
    followers.receive([.frame(rung: 0, SyntheticMedia.audio(0)), .lost(before: .zero)], ofOpus: nil)
    #expect(follower.samples == 1)
    followers.receive([.frame(rung: 0, SyntheticMedia.audio(1))], ofOpus: 1)
    #expect(follower.samples == 1, "of a worker that there is no more")
    followers.remove(follower)
    #expect(!followers.isMaking && followers.tracks.map(\.codec.id) == [.h264, .aac])
  }

  // MARK: workers

  /// A worker that never starts, and whether it was ended.
  private final class Worker: Sendable {
    private let hasEnded = Mutex(false)
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    func start(_ aim: TranscodeAim) throws -> LadderTranscoder {
      try LadderTranscoder(
        aim: aim, launcher: .process(executable: "/nothing", arguments: []), logger: logger
      ) { [weak self] events in
        guard events.contains(where: { if case .ended = $0 { true } else { false } }) else { return }
        self?.hasEnded.withLock { $0 = true }
      }
    }

    var isAlive: Bool { !hasEnded.withLock { $0 } }

    func isOver() async throws -> Bool {
      for _ in 0..<500 where isAlive { try await Task.sleep(for: .milliseconds(10)) }
      return !isAlive
    }
  }

  private static func seconds(_ count: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: count * 1_000_000_000) }

  private static let video = TranscodeAim.video([RungSpecification(shortSide: 720, bitRate: 3_000_000)])

  @Test func `What nobody uses is made for ten more seconds, though others follow`() async throws {
    var followers = try Self.begun()
    let follower = Follower()
    followers.add(follower)
    let (opus, video) = (Worker(), Worker())
    followers.take(opus: try opus.start(.audio(AudioSpecification(.opus))), followers.nextWorker(), now: .zero)
    let number = followers.nextWorker()
    followers.take(video: try video.start(Self.video), number, now: .zero)
    followers.receive([.track(rung: 0, try Self.rung)], of: .followers(number))
    let made = try #require(followers.tracks.last)
    let audio = try #require(followers.tracks.first(.audio))
    #expect(follower.codecs == [.h264, .opus, .h264] && audio.codec.id == .opus)
    // Each is kept by who gets it.
    followers.use([.video, made.id, audio.id], now: Self.seconds(5))
    followers.use([.video, made.id], now: Self.seconds(14))
    #expect(followers.isMaking && followers.isMakingVideo && opus.isAlive)
    followers.use([.video, made.id], now: Self.seconds(15))
    #expect(!followers.isMaking && followers.isMakingVideo && follower.codecs == [.h264, .aac, .h264])
    #expect(try await opus.isOver())
    // Who is about to follow may need it.
    followers.hold()
    followers.use([.video], now: Self.seconds(30))
    #expect(followers.isMakingVideo && video.isAlive)
    followers.letGo()
    followers.use([.video], now: Self.seconds(30))
    #expect(!followers.isMakingVideo && !followers.hasRungs && follower.codecs == [.h264, .aac])
    #expect(try await video.isOver())
  }

  @Test func `What an ended worker still makes is not taken for its successor's`() throws {
    var followers = try Self.begun()
    let follower = Follower()
    followers.add(follower)
    let (first, second) = (Worker(), Worker())
    let former = followers.nextWorker()
    followers.take(video: try first.start(Self.video), former, now: .zero)
    followers.receive(
      [.track(rung: 0, try Self.rung), .frame(rung: 0, SyntheticMedia.frame(0))], of: .followers(former))
    #expect(follower.samples == 1)
    followers.use([], now: Self.seconds(10))
    let number = followers.nextWorker()
    followers.take(video: try second.start(Self.video), number, now: Self.seconds(11))
    followers.receive(
      [.track(rung: 0, try Self.rung), .frame(rung: 0, SyntheticMedia.frame(1))], of: .followers(former))
    #expect(follower.samples == 1 && !followers.hasRungs && number != former)
    followers.receive(
      [.track(rung: 0, try Self.rung), .frame(rung: 0, SyntheticMedia.frame(2))], of: .followers(number))
    #expect(follower.samples == 2 && followers.hasRungs)
    // Opus as well.
    let (opus, third) = (followers.nextWorker(), Worker())
    followers.take(opus: try third.start(.audio(AudioSpecification(.opus))), opus, now: Self.seconds(11))
    followers.receive([.frame(rung: 0, SyntheticMedia.audio(0))], ofOpus: former)
    #expect(follower.samples == 2)
    followers.receive([.frame(rung: 0, SyntheticMedia.audio(1))], ofOpus: opus)
    #expect(follower.samples == 3)
    followers.remove(follower)
    #expect(!followers.isMaking && !followers.isMakingVideo)
  }
}

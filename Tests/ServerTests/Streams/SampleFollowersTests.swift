import FMP4
import Ingest
import NIOCore
import Support
import Synchronization
import Testing

@testable import Server

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

  @Test func `Opus takes the place of other audio while somebody follows`() throws {
    var followers = try Self.begun()
    let follower = Follower()
    followers.add(follower)
    followers.take(nil)
    #expect(follower.codecs == [.h264, .opus] && followers.isMaking)
    let made = try #require(followers.tracks.first(.audio))
    #expect(made.id != .audio && made.id != .video && made.timescale == 48_000)
    followers.receive([.frame(rung: 0, SyntheticMedia.audio(0)), .lost(before: .zero)])
    #expect(follower.samples == 1)
    followers.remove(follower)
    #expect(!followers.isMaking && followers.tracks.map(\.codec.id) == [.h264, .aac])
  }
}

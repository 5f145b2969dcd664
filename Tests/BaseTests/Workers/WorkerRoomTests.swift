@testable import Base
import FMP4
import Synchronization
import Testing

/// Room for workers that run at a time.
@Suite struct WorkerRoomTests {
  private final class Taken: Sendable { let count = Mutex(0) }

  /// A room for so many, and how many have it.
  private func room(_ most: Int) -> (room: WorkerRoom, taken: Taken) {
    let taken = Taken()
    let room = WorkerRoom { _, _ in
      taken.count.withLock { count in
        guard count < most else { return .descriptors }
        count += 1
        return nil
      }
    } giveBack: { _, _ in
      taken.count.withLock { $0 -= 1 }
    }
    return (room, taken)
  }

  @Test func `A limited room has so many places, and takes none where the whole has none`() {
    let (whole, taken) = self.room(3)
    let room = whole.limited(to: 2)
    #expect(room.take(.video, nil) == nil && room.take(.video, nil) == nil && room.take(.video, nil) == .full)
    #expect(taken.count.withLock { $0 } == 2)
    room.giveBack(.video, nil)
    #expect(room.take(.video, nil) == nil)
    room.giveBack(.video, nil)
    // Others have all of it now.
    #expect(whole.take(.video, nil) == nil && whole.take(.video, nil) == nil)
    #expect(room.take(.video, nil) == .descriptors)
    whole.giveBack(.video, nil)
    #expect(room.take(.video, nil) == nil, "what was not taken was given back")
  }

  @Test func `An address without a key has half of what is left, and others find room`() {
    let (whole, taken) = self.room(100)
    let room = whole.shared(places: 32)
    func fill(_ address: String) -> Int {
      var count = 0
      while room.take(.audio, address) == nil { count += 1 }
      return count
    }
    let hosts = (1...4).map { "192.0.2.\($0)" }
    #expect(hosts.map(fill) == [16, 8, 4, 2])
    #expect(room.take(.audio, hosts[0]) == .address)
    #expect(taken.count.withLock { $0 } == 30)
    // With a key, all that there is.
    #expect(room.take(.audio, nil) == nil && room.take(.audio, nil) == nil && room.take(.audio, nil) == .full)
    room.giveBack(.audio, hosts[0])
    #expect(room.take(.audio, "192.0.2.9") == nil, "its first one it has while there is room")
  }

  @Test func `Workers for viewers have half of the places, and publishers the rest`() {
    let room = self.room(100).room.shared(places: 32)
    let viewers = room.forViewers
    func fill(_ room: WorkerRoom, _ address: String?, _ kind: MediaKind = .audio) -> Int {
      var count = 0
      while room.take(kind, address) == nil { count += 1 }
      return count
    }
    #expect(fill(viewers, "192.0.2.1") == 8 && fill(viewers, "192.0.2.2") == 4 && fill(viewers, nil) == 4)
    #expect(viewers.take(.audio, nil) == .full && viewers.take(.video, nil) == .full)
    #expect(fill(room, "192.0.2.1") == 8, "half of what is left, as nothing of it is its viewers'")
    #expect(fill(room, nil) == 8)
    #expect(viewers.take(.audio, "192.0.2.1") == .full)
    for _ in 0..<4 { viewers.giveBack(.audio, nil) }
    #expect(fill(room, nil, .video) == 1, "what viewers leave is theirs as well")
    // Where there are few, viewers have one worker of video.
    let small = self.room(100).room.shared(places: 7)
    #expect(fill(small.forViewers, nil, .video) == 1 && fill(small, nil) == 3)
    #expect(fill(self.room(5).room.forViewers, nil) == 5, "as all others where nothing is counted")
  }

  @Test func `A worker of video takes four places, or all where there are fewer`() {
    let room = self.room(100).room.shared(places: 9)
    #expect(room.take(.video, "192.0.2.1") == nil && room.take(.video, "192.0.2.1") == .address)
    #expect(room.take(.video, nil) == nil && room.take(.video, nil) == .full && room.take(.audio, nil) == nil)
    room.giveBack(.video, "192.0.2.1")
    #expect(room.take(.video, "192.0.2.1") == nil, "its share was given back with its room")
    let small = self.room(100).room.shared(places: 2)
    #expect(small.take(.video, "192.0.2.1") == nil && small.take(.audio, nil) == .full)
  }
}

import Synchronization
import Testing

@testable import Ingest

/// Room for workers that run at a time.
@Suite struct WorkerRoomTests {
  private final class Taken: Sendable { let count = Mutex(0) }

  @Test func `A limited room has so many places, and takes none where the whole has none`() {
    let taken = Taken()
    let whole = WorkerRoom {
      taken.count.withLock { count in
        guard count < 3 else { return false }
        count += 1
        return true
      }
    } giveBack: {
      taken.count.withLock { $0 -= 1 }
    }
    let room = whole.limited(to: 2)
    #expect(room.take() && room.take() && !room.take())
    #expect(taken.count.withLock { $0 } == 2)
    room.giveBack()
    #expect(room.take())
    room.giveBack()
    // Others have all of it now.
    #expect(whole.take() && whole.take() && !room.take())
    whole.giveBack()
    #expect(room.take(), "what was not taken was given back")
  }
}

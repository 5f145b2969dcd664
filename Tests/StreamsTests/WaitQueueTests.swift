import Base
import FMP4
import NIOCore
import NIOEmbedded
@testable import Streams
import Support
import Testing

@Suite struct WaitQueueTests {
  private let view = StreamView(EpochView(id: "e", window: LiveWindow(length: .zero), availabilityStart: 0))
  private let first = WaitQueue.Condition.part(PartPosition(segment: 3, part: 1), .interleaved, epoch: "e")
  private let second = WaitQueue.Condition.part(PartPosition(segment: 3, part: 2), .interleaved, epoch: "e")

  @Test func thoseWhoWaitForTheSameAreJudgedOnceAndWokenTogether() throws {
    let loop = EmbeddedEventLoop()
    var room = WaitQueue()
    var woken = 0
    for _ in 0..<100 {
      room.add(first, on: loop, now: 0, deadline: .max).assumeIsolated().whenSuccess { _ in woken += 1 }
    }
    room.add(second, on: loop, now: 0, deadline: .max).assumeIsolated().whenSuccess { _ in woken += 1000 }
    var questions = 0
    var views = 0
    room.wake(
      now: 0,
      with: {
        views += 1
        return view
      },
      where: { condition in
        questions += 1
        return condition == first
      })
    #expect(views == 1, "all of them look at the same moment")
    #expect(questions == 2)
    #expect(woken == 0, "nothing runs while the stream's lock is held")
    loop.run()
    #expect(woken == 100)
    room.wake(now: 0, with: { view })
    loop.run()
    #expect(woken == 1100)
    #expect(room.isEmpty)
  }

  @Test func noRequestWaitsBeyondItsDeadline() throws {
    let loop = EmbeddedEventLoop()
    var room = WaitQueue()
    var woken: [Int64] = []
    for deadline in [10, 20, 30] as [Int64] {
      room.add(first, on: loop, now: 0, deadline: .at(deadline)).assumeIsolated().whenSuccess { _ in
        woken.append(deadline)
      }
    }
    room.giveUp(now: 9) { view }
    loop.run()
    #expect(woken.isEmpty)
    room.giveUp(now: 20) { view }
    loop.run()
    #expect(woken == [10, 20])
    room.giveUp(now: 40) { view }
    loop.run()
    #expect(woken == [10, 20, 30])
    #expect(room.isEmpty)
    #expect(room.waits.count == 3)
    #expect(room.waits.nanoseconds == 20 + 20 + 40, "from 0 until they were woken")
  }
}

import Base
import Testing

@Suite struct WakerTests {
  private static let long = Duration.seconds(3600)

  @Test(.timeLimit(.minutes(1))) func `a wake ends the sleep`() async {
    let waker = Waker()
    async let sleep: Void = waker.sleep(for: Self.long, since: 0)
    try? await Task.sleep(for: .milliseconds(5))
    waker.wake()
    await sleep
    #expect(waker.count == 1)
  }

  @Test(.timeLimit(.minutes(1))) func `a wake between the look and the sleep is not missed`() async {
    let waker = Waker()
    let count = waker.count
    waker.wake()
    await waker.sleep(for: Self.long, since: count)
  }

  @Test(.timeLimit(.minutes(1))) func `one wake ends one sleep`() async {
    let waker = Waker()
    waker.wake()
    let began = ContinuousClock.now
    await waker.sleep(for: .milliseconds(20), since: waker.count)
    #expect(ContinuousClock.now - began >= .milliseconds(20))
  }

  @Test(.timeLimit(.minutes(1))) func `a task that is cancelled sleeps no longer`() async {
    let waker = Waker()
    let task = Task { await waker.sleep(for: Self.long, since: 0) }
    try? await Task.sleep(for: .milliseconds(5))
    task.cancel()
    await task.value
  }
}

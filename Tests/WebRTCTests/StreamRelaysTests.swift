import Base
import FMP4
import NIOCore
import NIOEmbedded
import Publishing
import Support
import Synchronization
import Testing
@testable import WebRTC

/// Streams on their way to viewers by WebRTC, and their bounds.
@Suite struct StreamRelaysTests {
  private func sample(_ bytes: Int) -> MediaEvent { .sample(SyntheticMedia.audio(0, size: bytes)) }

  private final class Count: Sendable {
    private let value = Mutex(0)
    var now: Int { value.withLock { $0 } }
    func add() { value.withLock { $0 += 1 } }
  }

  // MARK: from the publisher's thread

  @Test func `The loop is woken once for all that waits`() {
    let wakes = Count()
    let inbox = SampleInbox { wakes.add() }
    for _ in 0..<5 { inbox.receive(sample(10)) }
    #expect(wakes.now == 1)
    let (events, hasLost) = inbox.take()
    #expect(events.count == 5 && !hasLost && inbox.take().events.isEmpty)
    inbox.receive(sample(10))
    #expect(wakes.now == 2)
  }

  @Test func `Samples wait to the limit of bytes; what exceeds it is left out, and told`() {
    let inbox = SampleInbox {}
    let limit = WebRTCLimits.waitingBytes
    inbox.receive(sample(limit - 1))
    inbox.receive(sample(1))
    #expect(inbox.take().hasLost == false)
    inbox.receive(sample(limit))
    inbox.receive(sample(1))
    // Behind a hole nothing is taken, so that it stands where it is.
    inbox.receive(sample(0))
    inbox.receive(.discontinuity)
    let (events, hasLost) = inbox.take()
    #expect(events.count == 2 && hasLost)
    inbox.receive(sample(limit))
    #expect(inbox.take().events.count == 1, "there is room again")
  }

  @Test func `Nobody is woken after the end`() {
    let wakes = Count()
    let inbox = SampleInbox { wakes.add() }
    inbox.close()
    inbox.receive(sample(1))
    #expect(wakes.now == 0)
  }

  // MARK: streams

  private final class Stream: WatchedStream {
    let name: StreamName
    init?(_ name: String) {
      guard let name = StreamName(name) else { return nil }
      self.name = name
    }
    func follow(_ follower: any SampleFollower) -> Bool { true }
    func unfollow(_ follower: any SampleFollower) {}
    func use(_ tracks: Set<TrackID>) {}
    func askForKeyFrame() -> Bool { false }
  }

  @Test func `As many streams are watched as may be, each once`() throws {
    let relays = StreamRelays(.system(), on: EmbeddedEventLoop())
    let streams = try (0...WebRTCLimits.relays).map { try #require(Stream("cam\($0)")) }
    let first = try #require(relays.relay(of: streams[0]))
    for stream in streams.dropLast() { #expect(relays.relay(of: stream) != nil) }
    #expect(relays.relay(of: streams[WebRTCLimits.relays]) == nil)
    #expect(relays.relay(of: streams[0]) === first, "who is watched already has a place")
    relays.drop(first)
    #expect(relays.relay(of: streams[WebRTCLimits.relays]) != nil && relays.relay(of: streams[0]) == nil)
    // A relay that is no longer the stream's ends nobody else's.
    relays.drop(first)
    #expect(relays.relay(of: streams[WebRTCLimits.relays]) != nil)
  }
}

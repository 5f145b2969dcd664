import Base
import FMP4
import Publishing
@testable import Streams
import Support
import Synchronization
import Testing

/// Who counts as a viewer, and for how long.
@Suite struct ViewerRegistryTests {
  private let time = ManualClock()
  private let life = MediaTime(milliseconds: 6000)

  private func registry(limit: Int) -> ViewerRegistry { ViewerRegistry(limit: limit, clock: time.clock) }

  private func client(_ number: Int) -> ClientID { ClientID(number: number) }

  @Test func anEndlessResponseIsAViewerForAsLongAsItLasts() throws {
    let viewers = registry(limit: 2)
    let cam = try #require(StreamName("cam"))
    var first = viewers.seat(stream: cam, client: client(1), lifetime: life)
    let second = viewers.seat(stream: cam, client: client(2), lifetime: life)
    #expect(first != nil && second != nil)
    time.advance(seconds: 3600)
    #expect(viewers.count(of: cam) == 2)
    #expect(viewers.counts.streams == [cam: [.mp4: 2]])
    #expect(viewers.seat(stream: cam, client: client(3), lifetime: life) == nil)
    #expect(!viewers.touch(stream: cam, client: client(4), lifetime: life))
    #expect(viewers.counts.refused == 2)
    first = nil
    // It may come again: the client counts for as long as one that asks for playlists.
    time.advance(seconds: 5.9)
    #expect(viewers.count(of: cam) == 2)
    time.advance(seconds: 0.2)
    #expect(viewers.count(of: cam) == 1)
    #expect(viewers.seat(stream: cam, client: client(3), lifetime: life) != nil)
    withExtendedLifetime(second) {}
  }

  @Test func endlessResponsesOfOneClientAreViewersEach() throws {
    let viewers = registry(limit: 3)
    let cam = try #require(StreamName("cam"))
    var seats = (0..<3).map { _ in viewers.seat(stream: cam, client: client(1), lifetime: life) }
    #expect(seats.allSatisfy { $0 != nil })
    #expect(viewers.count(of: cam) == 3)
    #expect(viewers.seat(stream: cam, client: client(1), lifetime: life) == nil)
    seats.removeLast()
    #expect(viewers.count(of: cam) == 2)
    #expect(viewers.touch(stream: cam, client: client(2), lifetime: life))
    #expect(!viewers.touch(stream: cam, client: client(3), lifetime: life))
  }

  @Test func aClientWithAPlaylistAndAnEndlessResponseIsOneViewer() throws {
    let viewers = registry(limit: 1)
    let cam = try #require(StreamName("cam"))
    #expect(viewers.touch(stream: cam, client: client(1), lifetime: life, delivery: .hls))
    let seat = viewers.seat(stream: cam, client: client(1), lifetime: life)
    #expect(seat != nil, "a viewer that plays is never refused")
    #expect(viewers.touch(stream: cam, client: client(1), lifetime: life, delivery: .hls))
    #expect(viewers.count(of: cam) == 1)
    time.advance(seconds: 10)
    #expect(viewers.count(of: cam) == 1)
    withExtendedLifetime(seat) {}
  }

  @Test func aClientThatLeavesWebRTCCountsAsWhatItsRequestsWere() throws {
    let viewers = registry(limit: 2)
    let cam = try #require(StreamName("cam"))
    #expect(viewers.touch(stream: cam, client: client(1), lifetime: life, delivery: .hls))
    var seat = viewers.seat(stream: cam, client: client(1), lifetime: .zero, delivery: .webrtc)
    #expect(viewers.counts.streams == [cam: [.webrtc: 1]])
    seat = nil
    #expect(viewers.counts.streams == [cam: [.hls: 1]])
    time.advance(seconds: 6)
    #expect(viewers.counts.streams.isEmpty)
    #expect(viewers.touch(stream: cam, client: client(1), lifetime: life, delivery: .hls))
    seat = viewers.seat(stream: cam, client: client(1), lifetime: .zero, delivery: .webrtc)
    time.advance(seconds: 3600)
    #expect(viewers.counts.streams == [cam: [.webrtc: 1]])
    seat = nil
    // Nobody has looked since: it is still known.
    #expect(viewers.touch(stream: cam, client: client(1), lifetime: life))
    #expect(viewers.counts.streams == [cam: [.hls: 1]])
    withExtendedLifetime(seat) {}
  }

  @Test func aSessionThatIsNotConnectedTakesNoPlaceThoughItIsCounted() throws {
    let viewers = registry(limit: 2)
    let cam = try #require(StreamName("cam"))
    var waiting = (0..<9).map { viewers.waitingSeat(stream: cam, client: client($0)) }
    #expect(waiting.allSatisfy { $0 != nil })
    #expect(viewers.counts.streams == [cam: [.webrtc: 9]] && viewers.count(of: cam) == 9)
    #expect(viewers.sessions.count == 9)
    // The places are those of who comes, and of who connects.
    #expect(viewers.touch(stream: cam, client: client(20), lifetime: life, delivery: .hls))
    #expect(waiting[3]?.connect() == true && waiting[4]?.connect() == false && viewers.counts.refused == 1)
    #expect(!viewers.touch(stream: cam, client: client(21), lifetime: life))
    #expect(viewers.waitingSeat(stream: cam, client: client(22)) == nil)
    #expect(viewers.waitingSeat(stream: cam, client: client(20))?.connect() == true, "it has its place already")
    #expect(viewers.counts.streams == [cam: [.webrtc: 9, .hls: 1]])
    waiting = []
    #expect(viewers.counts.streams == [cam: [.hls: 1]] && viewers.sessions.isEmpty)
    #expect(viewers.waitingSeat(stream: cam, client: client(22))?.connect() == true)
  }

  @Test func aSessionThatIsNotConnectedCanBeEnded() throws {
    let viewers = registry(limit: 2)
    let cam = try #require(StreamName("cam"))
    let seat = try #require(viewers.waitingSeat(stream: cam, client: client(1)))
    let ended = Mutex(false)
    seat.whenRevoked { ended.withLock { $0 = true } }
    let session = try #require(viewers.sessions.first)
    #expect(viewers.endSession(session.id) && ended.withLock { $0 })
  }

  @Test func aClientThatEndsAnEndlessResponseCountsAsOneOfThose() throws {
    let viewers = registry(limit: 2)
    let cam = try #require(StreamName("cam"))
    #expect(viewers.touch(stream: cam, client: client(1), lifetime: life))
    #expect(viewers.counts.streams == [cam: [nil: 1]])
    var seat = viewers.seat(stream: cam, client: client(1), lifetime: life)
    time.advance(seconds: 1)
    seat = nil
    #expect(viewers.counts.streams == [cam: [.mp4: 1]])
    withExtendedLifetime(seat) {}
  }

  @Test func eachEndlessResponseOfAClientCountsAsWhatItIs() throws {
    let viewers = registry(limit: 2)
    let cam = try #require(StreamName("cam"))
    let seats = [ViewerProtocol.webrtc, .mp4].map { delivery in
      viewers.seat(stream: cam, client: client(1), lifetime: life, delivery: delivery)
    }
    #expect(seats.allSatisfy { $0 != nil })
    #expect(viewers.counts.streams == [cam: [.webrtc: 1, .mp4: 1]])
  }

  @Test func aSeatIsGivenUpForAStreamThatIsGone() throws {
    let viewers = registry(limit: 1)
    let cam = try #require(StreamName("cam"))
    let other = try #require(StreamName("other"))
    var seat = viewers.seat(stream: cam, client: client(1), lifetime: life)
    #expect(seat != nil)
    seat = nil
    time.advance(seconds: 6.1)
    #expect(viewers.touch(stream: other, client: client(2), lifetime: life))
    #expect(viewers.counts.streams == [other: [nil: 1]])
  }

  private func client(_ number: Int, at host: String) throws -> ClientID {
    let address = try #require(NetworkAddress(parsing: host))
    return ClientID(number: number, host: address)
  }

  @Test func theAddressThatHasMostGivesItsNewestPlaceToOthers() throws {
    let viewers = registry(limit: 4)
    let cam = try #require(StreamName("cam"))
    for number in 0..<4 {
      #expect(viewers.touch(stream: cam, client: try client(number, at: "192.0.2.1"), lifetime: life))
    }
    #expect(!viewers.touch(stream: cam, client: try client(4, at: "192.0.2.1"), lifetime: life), "it is full")
    for number in 5..<8 {
      #expect(viewers.touch(stream: cam, client: try client(number, at: "192.0.2.\(number)"), lifetime: life))
    }
    // Its oldest is there still, and now all have one.
    #expect(!viewers.touch(stream: cam, client: try client(8, at: "192.0.2.8"), lifetime: life))
    #expect(viewers.touch(stream: cam, client: try client(0, at: "192.0.2.1"), lifetime: life))
    #expect(!viewers.touch(stream: cam, client: try client(1, at: "192.0.2.1"), lifetime: life), "it went last")
    #expect(viewers.count(of: cam) == 4 && viewers.counts.displaced == 3)
  }

  @Test func threeAddressesWithAThirdOfThePlacesEachLockNoOtherOut() throws {
    let viewers = registry(limit: 60)
    let cam = try #require(StreamName("cam"))
    for number in 0..<60 {
      _ = viewers.touch(stream: cam, client: try client(number, at: "192.0.2.\(number % 3)"), lifetime: life)
    }
    #expect(viewers.count(of: cam) == 60)
    for number in 0..<24 {
      #expect(viewers.touch(stream: cam, client: try client(number, at: "198.51.100.\(number)"), lifetime: life))
      for other in 0..<3 {
        let again = try client(100 + number, at: "192.0.2.\(other)")
        #expect(!viewers.touch(stream: cam, client: again, lifetime: life), "they come again in vain")
      }
    }
    #expect(viewers.counts.displaced == 24)
  }

  @Test func ofTheLastTenthNoAddressGetsMoreThanHalfOfAll() throws {
    let viewers = registry(limit: 100)
    let cam = try #require(StreamName("cam"))
    let admitted = try (0..<200).count {
      viewers.touch(stream: cam, client: try client($0, at: "192.0.2.1"), lifetime: life)
    }
    #expect(admitted == 91)
    for number in 0..<9 {
      #expect(viewers.touch(stream: cam, client: try client(number, at: "192.0.2.2"), lifetime: life))
    }
    #expect(viewers.counts.displaced == 0)
    #expect(viewers.touch(stream: cam, client: try client(9, at: "192.0.2.2"), lifetime: life))
    #expect(viewers.counts.displaced == 1)
  }

  @Test func twoAddressesThatHaveEquallyManyDoNotTakeTurns() throws {
    let viewers = registry(limit: 8)
    let cam = try #require(StreamName("cam"))
    for number in 0..<8 {
      #expect(viewers.touch(stream: cam, client: try client(number, at: "192.0.2.\(number % 3)"), lifetime: life))
    }
    // Three, three and two: with one more the third would have what the others have now.
    for number in 8..<20 {
      #expect(!viewers.touch(stream: cam, client: try client(number, at: "192.0.2.\(number % 3)"), lifetime: life))
    }
    #expect(viewers.counts.displaced == 0)
  }

  @Test func aPlaceThatWasGivenUpIsNotTakenAgain() throws {
    let viewers = registry(limit: 4)
    let cam = try #require(StreamName("cam"))
    #expect(viewers.touch(stream: cam, client: try client(0, at: "192.0.2.1"), lifetime: life))
    for number in 1..<100 {
      // Of the same client, one after the other: what is left is one place.
      let seat = viewers.seat(stream: cam, client: try client(1, at: "192.0.2.1"), lifetime: life)
      #expect(seat != nil, "\(number)")
    }
    #expect(viewers.count(of: cam) == 2)
    time.advance(seconds: 5)
    #expect(viewers.touch(stream: cam, client: try client(1, at: "192.0.2.1"), lifetime: life))
    time.advance(seconds: 2)
    for number in 2..<5 {
      #expect(viewers.touch(stream: cam, client: try client(number, at: "192.0.2.1"), lifetime: life))
    }
    #expect(viewers.touch(stream: cam, client: try client(9, at: "192.0.2.9"), lifetime: life))
    #expect(viewers.touch(stream: cam, client: try client(1, at: "192.0.2.1"), lifetime: life), "it is the oldest")
    #expect(viewers.count(of: cam) == 4 && viewers.counts.displaced == 1)
  }

  @Test func anEndlessResponseThatIsDisplacedEnds() throws {
    let viewers = registry(limit: 2)
    let cam = try #require(StreamName("cam"))
    let seats = try (0..<2).map { _ in
      viewers.seat(stream: cam, client: try client(1, at: "192.0.2.1"), lifetime: life)
    }
    let ended = Mutex<[Int]>([])
    for (index, seat) in seats.enumerated() { seat?.whenRevoked { ended.withLock { $0.append(index) } } }
    #expect(viewers.touch(stream: cam, client: try client(2, at: "192.0.2.2"), lifetime: life))
    #expect(ended.withLock { $0 } == [1])
    #expect(viewers.count(of: cam) == 2)
    withExtendedLifetime(seats) {}
    #expect(!viewers.touch(stream: cam, client: try client(3, at: "192.0.2.3"), lifetime: life))
  }
}

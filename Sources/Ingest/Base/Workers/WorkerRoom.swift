package import FMP4
internal import Synchronization

/// The server's room for the workers that media of publishers and of their viewers ask for.
package struct WorkerRoom: Sendable {
  /// Why there is none.
  package enum Refusal: Sendable, Hashable, CustomStringConvertible {
    case descriptors
    /// As many as there may be.
    case full
    /// The address has as many as it may have.
    case address

    package var description: String {
      switch self {
      case .descriptors: "the server has no file descriptors for its worker"
      case .full: "the server has as many workers as its processors and memory allow; try again when others have ended"
      case .address: "without a key an address has at most half of the workers that are left; publish with a key"
      }
    }
  }

  /// Takes the room of one worker and its transcoder. Nil if it was taken, else why not. `address`: that of a publisher that shows
  /// no key; nil for others.
  package let take: @Sendable (_ kind: MediaKind, _ address: String?) -> Refusal?
  /// Gives it back: with what it was taken with.
  package let giveBack: @Sendable (_ kind: MediaKind, _ address: String?) -> Void

  /// Places of a worker of video.
  private static let placesOfVideo = 4
  /// How many there are in all; nil where they are not counted.
  private var places: Int?

  /// Nothing is counted.
  package static let unlimited = WorkerRoom(take: { _, _ in nil }, giveBack: { _, _ in })

  package init(
    take: @escaping @Sendable (MediaKind, String?) -> Refusal?,
    giveBack: @escaping @Sendable (MediaKind, String?) -> Void
  ) {
    self.take = take
    self.giveBack = giveBack
  }

  /// The same room, for at most so many workers at a time.
  package func limited(to most: Int) -> WorkerRoom { counted(Places(all: most, ofVideo: 1, .byAll)) }

  /// The same room, with so many places for all: a worker of audio takes one, one of video up to four. An address that shows no key
  /// has at most half of what is left, and one worker in any case.
  package func shared(places: Int) -> WorkerRoom {
    var room = counted(Places(all: places, ofVideo: Self.placesOfVideo, .byAddresses))
    room.places = places
    return room
  }

  /// The part of the same room that workers for viewers may have: half of its places, or those of one worker of video where these
  /// are more. Publishers have the rest, and an address its share of that whatever is made for its viewers.
  package var forViewers: WorkerRoom {
    guard let places else { return self }
    let most = max(places / 2, min(Self.placesOfVideo, places))
    let ofNobody = WorkerRoom(take: { kind, _ in take(kind, nil) }, giveBack: { kind, _ in giveBack(kind, nil) })
    return ofNobody.counted(Places(all: most, ofVideo: Self.placesOfVideo, .byAddresses))
  }

  private func counted(_ places: Places) -> WorkerRoom {
    let taken = Taken(places)
    return WorkerRoom { kind, address in
      if let refusal = taken.places.withLock({ $0.take(kind, address) }) { return refusal }
      guard let refusal = take(kind, address) else { return nil }
      taken.places.withLock { $0.giveBack(kind, address) }
      return refusal
    } giveBack: { kind, address in
      taken.places.withLock { $0.giveBack(kind, address) }
      giveBack(kind, address)
    }
  }

  private final class Taken: Sendable {
    let places: Mutex<Places>
    init(_ places: Places) { self.places = Mutex(places) }
  }

  private struct Places {
    let all: Int
    /// Those of a worker of video.
    let ofVideo: Int
    let rule: Rule
    private var taken = 0
    private var byAddress: [String: Int] = [:]

    /// Who has them.
    enum Rule {
      case byAll
      /// An address has its share of them.
      case byAddresses
    }

    init(all: Int, ofVideo: Int, _ rule: Rule) {
      (self.all, self.ofVideo, self.rule) = (all, min(ofVideo, all), rule)
    }

    private func count(of kind: MediaKind) -> Int { kind == .video ? ofVideo : 1 }

    mutating func take(_ kind: MediaKind, _ address: String?) -> Refusal? {
      let more = count(of: kind)
      guard more <= all - taken else { return .full }
      if rule == .byAddresses, let address {
        let own = byAddress[address, default: 0]
        guard FairShare.allows(more, own: own, taken: taken, of: all) else { return .address }
        byAddress[address] = own + more
      }
      taken += more
      return nil
    }

    mutating func giveBack(_ kind: MediaKind, _ address: String?) {
      let count = count(of: kind)
      taken -= count
      guard let address, let own = byAddress[address] else { return }
      byAddress[address] = own > count ? own - count : nil
    }
  }
}

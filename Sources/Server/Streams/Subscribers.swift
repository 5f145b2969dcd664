internal import FMP4
package import NIOCore
internal import Storage

/// The subscribers of a stream: sinks (recorders, segment folders), followers of samples, growing responses, and waiting requests. The stream never
/// waits for them.
package struct Subscribers: Sendable {
  private(set) var sinks: [any FragmentSink] = []
  /// Those who get samples before they are cut into fragments.
  var samples = SampleFollowers()
  /// The sinks of ended epochs.
  var closing = ClosingSinks()
  /// The epoch of `sinks`. A sink that was detached is not made again for it.
  private var sinksEpoch = ""
  /// Sinks have ended with a publication of this epoch, and are made again with the next.
  private var awaitsPublication = false
  /// The fragments of the newest segment, if decoding can start with it, for a recording that starts now.
  private var newestSegment: [PublishedFragment] = []
  private var audiences: [ObjectIdentifier: (audience: LoopViewers, count: Int)] = [:]
  /// By window (a rung's, or nil for the source's) and event loop, with the oldest segment that a response may follow.
  private var followers: [Rendition?: [ObjectIdentifier: (followers: SegmentFollowers, oldest: Int)]] = [:]
  /// Counts fragments, for viewers that join between two of them.
  private var position = 0
  /// A stand-in is on air: sinks that leave it out get nothing.
  var isStoodIn = false
  /// An init segment arrived since this process started or resumed the epoch.
  private var hasInit = false
  /// The tracks of the newest init segment.
  private var tracks: [TrackDescription] = []
  var waiting = WaitQueue()

  package init() {}

  // MARK: Events

  mutating func beginEpoch() {
    sinks = []
    hasInit = false
    dismissFollowers { $0 != nil }
  }

  /// Passes an event to all subscribers of the source.
  package mutating func deliver(_ event: StoredEvent) {
    for sink in sinks where !leavesOut(sink, event) { sink.receive(event) }
    switch event {
    case .fragment(let fragment):
      if fragment.fragment.startsSegment {
        newestSegment = fragment.fragment.isIndependent ? [fragment] : []
      } else if !newestSegment.isEmpty {
        newestSegment.append(fragment)
      }
      deliver { fragment.pieces(of: $0) }
    case .initialization(let initSegment):
      newestSegment = []
      defer { tracks = initSegment.tracks }
      // A response has one init segment: it ends when the parameters of its tracks change. Before the first init segment, it
      // waits for it.
      if hasInit { return dismissViewers(from: tracks, to: initSegment.tracks) }
      hasInit = true
      let head = BodyPiece.bytes(initSegment.interleaved)
      deliver { _ in [head] }
    case .discontinuity: newestSegment = []
    case .segmentEnd, .clock, .redated, .end: break
    }
  }

  private func leavesOut(_ sink: any FragmentSink, _ event: StoredEvent) -> Bool {
    guard isStoodIn, sink.leavesOutStandIns else { return false }
    if case .end = event { return false }
    return true
  }

  private mutating func deliver(_ pieces: @escaping @Sendable ([TrackID]?) -> [BodyPiece]) {
    position += 1
    for (_, entry) in audiences where entry.count > 0 { entry.audience.deliver(position: position, pieces) }
  }

  /// The stream has ended; the source sends nothing more.
  package mutating func end() {
    dismissAudiences()
    dismissFollowers { $0 == nil }
    closing.add(sinks)
    sinks = []
    newestSegment = []
  }

  // MARK: Sinks

  /// Makes the sinks of a new epoch, and those of a publication after one that stopped. False when older sinks have too many open
  /// files; then none are made.
  ///
  /// - Parameter make: gets the epoch's name, and whether it is new. Otherwise only what ends with a publication is made.
  mutating func makeSinks(of epoch: borrowing Epoch, _ make: (_ epoch: String, _ isNew: Bool) -> [any FragmentSink])
    -> Bool
  {
    let isNew = sinksEpoch != epoch.id
    guard isNew || awaitsPublication else { return true }
    (sinksEpoch, awaitsPublication) = (epoch.id, false)
    guard hasRoomForSinks() else { return false }
    let made = make(epoch.id, isNew)
    for sink in made { attach(sink, to: epoch) }
    return true
  }

  /// The publication is over, and the stream waits for the next one: recordings end.
  mutating func endPublication(_ reason: EndReason) {
    for sink in sinks where sink.endsWithPublication { sink.receive(.end(reason)) }
    detach(where: \.endsWithPublication)
    if !isStoodIn { newestSegment = [] }
    awaitsPublication = true
  }

  /// The next publication is the first of its epoch, which has begun without one.
  mutating func awaitPublication() { awaitsPublication = true }

  /// Fewer than `ClosingSinks.limit` sinks that are over have files open still.
  mutating func hasRoomForSinks() -> Bool { closing.count() < ClosingSinks.limit }

  /// Adds a sink. It receives the parameters at once, and the newest segment so far, if decoding can start with it.
  mutating func attach(_ sink: any FragmentSink, to epoch: borrowing Epoch) {
    if let initSegment = epoch.initSegment { sink.receive(.initialization(initSegment)) }
    if let anchor = epoch.anchor { sink.receive(.clock(anchor)) }
    if !(isStoodIn && sink.leavesOutStandIns) { for fragment in newestSegment { sink.receive(.fragment(fragment)) } }
    sinks.append(sink)
  }

  /// Nothing more of the stream reaches these sinks. Those that were told to end still have files open.
  mutating func detach(where isMeant: (any FragmentSink) -> Bool) {
    closing.add(sinks.filter(isMeant))
    sinks.removeAll(where: isMeant)
  }

  // MARK: stream.mp4

  /// Adds a viewer of `stream.mp4` on a loop. Returns the position of the first fragment that it will receive.
  package mutating func join(on eventLoop: any EventLoop) -> (audience: LoopViewers, firstPosition: Int) {
    let key = ObjectIdentifier(eventLoop)
    let entry = audiences[key] ?? (LoopViewers(eventLoop: eventLoop), 0)
    audiences[key] = (entry.audience, entry.count + 1)
    return (entry.audience, position + 1)
  }

  package mutating func leave(_ eventLoop: any EventLoop) -> LoopViewers? {
    let key = ObjectIdentifier(eventLoop)
    guard let entry = audiences[key] else { return nil }
    audiences[key]?.count = max(0, entry.count - 1)
    return entry.audience
  }

  /// Ends the responses with a track that has changed.
  private mutating func dismissViewers(from before: [TrackDescription], to now: [TrackDescription]) {
    position += 1
    for (_, entry) in audiences {
      entry.audience.finish(before: position) { chosen in
        guard let chosen else { return before.defaults != now.defaults }
        return before.filter { chosen.contains($0.id) } != now.filter { chosen.contains($0.id) }
      }
    }
  }

  private mutating func dismissAudiences() {
    for (_, entry) in audiences { entry.audience.finish() }
    audiences = [:]
  }

  // MARK: Growing segments

  /// Adds a response that follows a segment of a rendition on a loop, and returns the followers there.
  mutating func follow(_ sequenceNumber: Int, _ rendition: Rendition, on eventLoop: any EventLoop) -> SegmentFollowers {
    let known = followers[rendition.rung]?[ObjectIdentifier(eventLoop)]
    let all = known?.followers ?? SegmentFollowers(eventLoop: eventLoop)
    let oldest = min(known?.oldest ?? sequenceNumber, sequenceNumber)
    followers[rendition.rung, default: [:]][ObjectIdentifier(eventLoop)] = (all, oldest)
    return all
  }

  func followers(of rendition: Rendition, on eventLoop: any EventLoop) -> SegmentFollowers? {
    followers[rendition.rung]?[ObjectIdentifier(eventLoop)]?.followers
  }

  /// Passes the new state of a window, the source's or a rung's, to the followers of its segments. Several segments may have
  /// been completed at once. When the newest one is complete, all followers are done; later ones follow the next segment.
  mutating func feed(_ window: LiveWindow, of rung: TranscodedRendition? = nil) {
    guard !followers.isEmpty, let here = followers[rung?.rendition], let newest = window.segments.last else { return }
    for (loop, followed) in here {
      let count = max(1, newest.sequenceNumber - followed.oldest + 1)
      followed.followers.deliver(Array(window.segments.suffix(count)))
      followers[rung?.rendition]?[loop]?.oldest = newest.sequenceNumber
    }
    if newest.isComplete { followers[rung?.rendition] = nil }
  }

  /// Passes the changes of the rungs' windows since these versions. Returns whether there are any.
  mutating func feed(_ rungs: [TranscodedRendition], since versions: [Int]) -> Bool {
    var hasChanged = false
    for (rung, version) in zip(rungs, versions) where rung.window.version != version {
      hasChanged = true
      feed(rung.window, of: rung)
    }
    return hasChanged
  }

  /// Ends the responses that follow segments of these rungs; nil is the source.
  mutating func dismissFollowers(where areMeant: (_ rung: Rendition?) -> Bool) {
    for (rung, here) in followers where areMeant(rung) {
      for followed in here.values { followed.followers.finish() }
      followers[rung] = nil
    }
  }
}

extension Rendition {
  /// Nil for renditions of the source's window.
  fileprivate var rung: Rendition? { isRung ? self : nil }
}

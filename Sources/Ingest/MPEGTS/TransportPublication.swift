package import Base
package import NIOCore
package import Publishing

/// A publication whose media comes as an MPEG transport stream: by HTTP, UDP or SRT. It takes one programme with all of
/// its tracks. With `ProgramChoice.each` the others are publications beside it.
package struct TransportPublication {
  /// What one of the other programmes asks for.
  package struct Further {
    var program: UInt16
    var actions: [PublicationAction]
    var encoder: String
    /// Nothing more comes of it.
    var end: End?
    /// It is the connection's first one, which has left before.
    var isFirst = false
    /// It is the connection's first one, whose own publication ends.
    package var firstHasLeft = false

    enum End: Hashable {
      /// Its media cannot be used.
      case unusable(String)
      /// The stream has it no longer.
      case gone
    }
  }

  private var stream: TransportStream
  private let reading: ClockReading
  private var program: ProgramPublication
  /// The other programmes by number. Nil for one whose media cannot be used.
  private var others: [UInt16: ProgramPublication?] = [:]
  private var further: [Further] = []
  /// The first of several programmes has left. If it comes again, it is one of the others.
  private var firstHasLeft = false
  private var events: [TransportEvent] = []
  private var begunAt: MonotonicTime?
  private var contentToldAt: MonotonicTime?

  /// Time from the first byte within which a programme has to come, in nanoseconds.
  static let programWait: Int64 = 10_000_000_000

  /// Between two accounts of the content, in nanoseconds.
  private static let contentInterval: Int64 = 1_000_000_000

  package init(reading: ClockReading, _ choice: ProgramChoice = .first) {
    stream = TransportStream(choice == .all ? .first : choice)
    self.reading = reading
    program = ProgramPublication(reading: reading)
  }

  /// Bytes of media that wait for the start of their programme, at most. Programmes that have not begun have equal parts.
  package var mostHeldAtStart = Int.max { didSet { divideStart() } }

  /// Whether a programme has not begun.
  package var awaitsStart: Bool { waitingPrograms > 0 }

  private var waitingPrograms: Int {
    others.values.reduce(program.awaitsStart && !firstHasLeft ? 1 : 0) { $0 + ($1?.awaitsStart == true ? 1 : 0) }
  }

  private mutating func divideStart() {
    let most = mostHeldAtStart / max(1, waitingPrograms)
    program.mostHeldAtStart = most
    for number in others.keys { others[number]??.mostHeldAtStart = most }
  }

  /// Bytes that are held: unfinished ones of all tracks, and media before the start of each programme.
  package var heldBytes: Int {
    others.values.reduce(stream.heldBytes &+ program.heldBytes) { $0 &+ ($1?.heldBytes ?? 0) }
  }

  package var encoder: String { program.encoder }
  package var counts: TransportCounts { stream.counts }
  /// Why nothing of it is published, by what came.
  var fault: WireError { stream.fault() }

  /// Time of the next `tick`. Nil if nothing waits.
  package func deadline(after now: MonotonicTime) -> MonotonicTime? {
    guard !program.hasMap, let begunAt else {
      return others.values.reduce(firstHasLeft ? nil : program.deadline(after: now)) { earliest, other in
        guard let own = other?.deadline(after: now) else { return earliest }
        return earliest.map { min($0, own) } ?? own
      }
    }
    return max(begunAt &+ Self.programWait, now &+ 1)
  }

  /// Handles the passing of time. Throws if no programme or no supported media has come.
  package mutating func tick(now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) {
    if !program.hasMap, let begunAt, now &- begunAt >= Self.programWait {
      throw stream.fault(" within \(Self.programWait / 1_000_000_000) s")
    }
    for number in others.keys.sorted() {
      with(number) { other, actions throws(WireError) in try other.tick(now: now, to: &actions) }
    }
    if !firstHasLeft { try program.tick(now: now, to: &out) }
  }

  /// Takes received bytes. `now` is the arrival time.
  package mutating func receive(_ bytes: ByteBuffer, now: MonotonicTime, to out: inout [PublicationAction])
    throws(WireError)
  {
    begunAt = begunAt ?? now
    stream.receive(bytes, to: &events)
    try passOn(now, to: &out)
    guard program.hasMap, contentToldAt.map({ now &- $0 >= Self.contentInterval }) ?? true else { return }
    contentToldAt = now
    tellContent(to: &out)
  }

  /// The transport has lost bytes before those that come next.
  package mutating func noteLoss(bytes: Int) { stream.noteLoss(bytes: bytes) }

  /// The sender has ended: what is complete still counts.
  package mutating func finish(now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) {
    stream.finish(to: &events)
    try passOn(now, to: &out)
    // One that has not begun yet would ask the gate for a stream that is over.
    for number in others.keys.sorted() {
      with(number) { other, actions throws(WireError) in if !other.awaitsStart { other.finish(to: &actions) } }
    }
    if !firstHasLeft { program.finish(to: &out) }
    if program.hasMap { tellContent(to: &out) }
  }

  /// What the other programmes have asked for since the last call, in order.
  package mutating func takeFurther() -> [Further] {
    guard !further.isEmpty else { return [] }
    defer { further = [] }
    return further
  }

  private mutating func tellContent(to out: inout [PublicationAction]) {
    if !firstHasLeft { out.append(.inBand(.content(stream.content))) }
    for number in others.keys.sorted() {
      let content = stream.content(of: number)
      with(number) { _, actions throws(WireError) in actions.append(.inBand(.content(content))) }
    }
  }

  private mutating func passOn(_ now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) {
    if events.isEmpty { return }
    // Copied out, so that an error leaves no events behind.
    let batch = events
    events.removeAll(keepingCapacity: batch.count < 64)
    for event in batch {
      switch event {
      case .program(let map):
        if isMain(map.program) {
          program.begin(map, now, to: &out)
        } else {
          if others[map.program] == nil {
            others[map.program] = ProgramPublication(reading: reading)
            divideStart()
          }
          with(map.program) { other, actions throws(WireError) in other.begin(map, now, to: &actions) }
        }
      case .element(let number, let pid, let event):
        if isMain(number) {
          try program.receive(event, pid, now, to: &out)
        } else {
          with(number) { other, actions throws(WireError) in try other.receive(event, pid, now, to: &actions) }
        }
      case .splice(let number, let cue):
        if isMain(number) {
          program.receive(cue, to: &out)
        } else {
          with(number) { other, actions throws(WireError) in other.receive(cue, to: &actions) }
        }
      case .programEnded(let number):
        if let other = others.removeValue(forKey: number) {
          further.append(
            Further(
              program: number, actions: [], encoder: other?.encoder ?? "", end: .gone, isFirst: isFirst(number)))
        } else if stream.choice == .each, isMain(number) {
          firstHasLeft = true
          further.append(
            Further(program: number, actions: [], encoder: encoder, end: .gone, isFirst: true, firstHasLeft: true))
        }
      case .programs, .discontinuity: break
      }
    }
  }

  /// One programme after the other is the publication's own, unless each has one.
  private func isMain(_ number: UInt16) -> Bool { stream.choice != .each || isFirst(number) && !firstHasLeft }

  private func isFirst(_ number: UInt16) -> Bool { number == stream.leading }

  private mutating func with(
    _ number: UInt16,
    _ body: (inout ProgramPublication, inout [PublicationAction]) throws(WireError) -> Void
  ) {
    guard var other = others[number] ?? nil else { return }
    // In place, not beside a copy.
    others[number] = .some(nil)
    var actions: [PublicationAction] = []
    do throws(WireError) {
      try body(&other, &actions)
      others[number] = other
      if actions.isEmpty { return }
      further.append(
        Further(program: number, actions: actions, encoder: other.encoder, isFirst: isFirst(number)))
    } catch {
      further.append(
        Further(
          program: number, actions: actions, encoder: other.encoder, end: .unusable(error.reason),
          isFirst: isFirst(number)))
    }
  }
}

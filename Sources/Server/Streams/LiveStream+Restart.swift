internal import Basics
internal import FMP4
internal import Ingest
internal import Synchronization

/// An epoch goes on in the next process: this one writes down what that has to know, and at its end leaves the stream
/// open.
extension LiveStream {
  /// Writes down what players learn by these events.
  func remember(_ events: [StoredEvent], _ state: borrowing State) {
    guard let ledger else { return }
    let isNews = events.contains { event in
      switch event {
      case .initialization, .segmentEnd: true
      case .fragment(let fragment): fragment.fragment.startsSegment
      case .clock, .redated, .discontinuity, .end: false
      }
    }
    guard isNews, let record = record(state) else { return }
    ledger.note(record.withMargin(), promise: settings.promise, of: name)
  }

  private func record(_ state: borrowing State) -> EpochRecord? {
    guard var record = state.epoch.record else { return nil }
    record.startedAt = state.startedAt
    return record
  }

  /// From here on a publisher's end is an interruption: it goes because this process does.
  func prepareToLeave() {
    state.withLock { $0.isLeaving = true }
  }

  /// Lets the publisher go, ends what follows the stream, and leaves the epoch open for the next process. Viewers that
  /// wait go on waiting.
  func handOver() {
    let evict = state.withLock { state -> (@Sendable (EndReason) -> Void)? in
      guard state.phase != .ended else { return nil }
      state.isLeaving = true
      let evict = state.holder?.evict
      state.holder = nil
      stamp.change()
      interrupt(&state)
      for sink in state.sinks { sink.receive(.end(.shutdown)) }
      state.sinks = []
      dismissAudiences(&state)
      dismissFollowers(&state)
      if let record = record(state) { ledger?.note(record, promise: settings.promise, of: name) }
      state.enter(.reconnecting, now: clock.monotonicNanoseconds())
      return evict
    }
    evict?(.shutdown)
  }

  /// Answers those who wait with what there is: the connections are about to close.
  func letGo() {
    state.withLock { state in
      stamp.change()
      state.hasLetGo = true
      state.waiting.wakeAll(now: clock.monotonicNanoseconds())
    }
  }

  /// Nobody is kept waiting any more.
  var hasLetGo: Bool { state.withLock { $0.hasLetGo } }
}

extension StreamSettings {
  /// What players were told that follows from the settings: where it is another, an epoch cannot go on.
  var promise: String {
    let rungs = ladder.map(\.name) + (sound.map { [$0.coding.rawValue] } ?? [])
    return [
      "part \(partTarget.rescaled(to: 1000))", "segment \(segmentTarget.rescaled(to: 1000))", "\(targetDuration)",
      layout.rawValue, partAddressing.rawValue, rungs.joined(separator: " "),
    ].joined(separator: ", ")
  }
}

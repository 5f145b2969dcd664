internal import Basics
internal import FMP4
internal import Ingest

/// An epoch goes on in the next process: this one writes down what that has to know, and at its end leaves the stream
/// open.
extension LiveStream {
  /// Writes down what players learn by these events.
  func remember(_ events: [StoredEvent], _ life: EpochLife) {
    guard let stateStore else { return }
    let isNews = events.contains { event in
      switch event {
      case .initialization, .segmentEnd: true
      case .fragment(let fragment): fragment.fragment.startsSegment
      case .clock, .redated, .discontinuity, .end: false
      }
    }
    guard isNews, let record = life.record else { return }
    note(record.withMargin(), in: stateStore)
  }

  /// Writes down what the next process has to know of the epoch.
  private func note(_ record: EpochRecord, in stateStore: StreamStateStore) {
    stateStore.note(record, promise: settings.promise, of: name) { [weak self] in
      self?.periods(ofEpoch: record.epoch) ?? []
    }
  }

  /// What the next process keeps of a manifest. Nobody is told of the times of day in it, so they may still be corrected.
  private func periods(ofEpoch id: String) -> [KeptPeriod] {
    state.withLock { $0.life.epoch.id == id ? $0.life.epoch : nil }?.periodsToKeep ?? []
  }

  /// From here on a publisher's end is an interruption: it goes because this process does.
  func prepareToLeave() {
    state.withLock { $0.life.isLeaving = true }
  }

  /// Lets the publisher go, ends what follows the stream, and leaves the epoch open for the next process. Viewers that
  /// wait go on waiting.
  func handOver() {
    let former = state.withLock { state -> PublisherSlot.Holder? in
      guard state.life.phase != .ended else { return nil }
      state.life.isLeaving = true
      let former = state.publisher.release()
      stamp.change()
      interrupt(&state)
      state.subscribers.deliver(.end(.shutdown))
      state.subscribers.end()
      if let stateStore, let record = state.life.record { note(record, in: stateStore) }
      state.life.enter(.reconnecting, now: clock.monotonicNanoseconds())
      return former
    }
    former?.evict(.shutdown)
  }

  /// The last frames of renditions come after the epoch was handed over, and manifests tell of them: the next process is to tell
  /// the same.
  func noteRenditions(_ state: borrowing State) {
    guard state.life.isLeaving, state.life.phase == .reconnecting, let stateStore, let record = state.life.record else {
      return
    }
    note(record, in: stateStore)
  }

  /// Answers those who wait with what there is: the connections are about to close.
  func letGo() {
    state.withLock { state in
      stamp.change()
      state.life.hasLetGo = true
      state.subscribers.waiting.wake(now: clock.monotonicNanoseconds(), with: { state.life.view() })
    }
  }
}

extension StreamSettings {
  /// What players were told that follows from the settings: where it is another, an epoch cannot go on.
  var promise: String {
    let rungs = ladder.map(\.name) + (audio.map { [$0.coding.rawValue] } ?? [])
    return [
      "part \(partTarget.rescaled(to: 1000))", "segment \(segmentTarget.rescaled(to: 1000))", "\(targetDuration)",
      layout.rawValue, partAddressing.rawValue, rungs.joined(separator: " "),
    ].joined(separator: ", ")
  }
}

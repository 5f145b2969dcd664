internal import Base
internal import Control
internal import FMP4
internal import Publishing
internal import Transcode

/// Lets the next process resume an epoch: this process writes a record, and leaves the stream open when it ends.
extension LiveStream {
  /// Writes a record when these events tell players something new.
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

  /// Writes the record of the epoch for the next process.
  private func note(_ record: EpochRecord, in stateStore: StreamStateStore) {
    stateStore.note(record, contract: settings.contract, of: name) { [weak self] in self?.complete($0) ?? $0 }
  }

  /// The record with Periods and init segments for the next process; without them once the stream has another epoch. The Periods
  /// do not count as published times of day, so those may still be corrected.
  private func complete(_ record: EpochRecord) -> EpochRecord {
    guard let epoch = state.withLock({ $0.life.epoch.id == record.epoch ? $0.life.epoch : nil }) else { return record }
    var record = record
    (record.periods, record.inits) = (epoch.periodsToKeep, epoch.initsToKeep)
    return record
  }

  /// From now on, the end of a publisher counts as an interruption, because this process ends.
  func prepareToLeave() {
    state.withLock { $0.life.isLeaving = true }
  }

  /// Disconnects the publisher, ends the sinks, and leaves the epoch open for the next process. Waiting requests continue to
  /// wait.
  func handOver() {
    let former = state.withLock { state -> PublisherSlot.Holder? in
      makeTurns(&state)
      guard state.life.phase != .ended else { return nil }
      state.life.isLeaving = true
      let former = state.publisher.release()
      if let former { tell(.streamInterrupted, because: EndReason.shutdown.text, of: former.link, state) }
      stamp.change()
      interrupt(&state)
      // Its next event is answered by the end.
      state.dropStandIn()
      state.subscribers.deliver(.end(.shutdown))
      state.subscribers.end()
      if let stateStore, let record = state.life.record { note(record, in: stateStore) }
      state.life.enter(.reconnecting, now: clock.monotonic())
      return former
    }
    former?.evict(.shutdown)
  }

  /// Updates the record when the last frames of renditions arrive after the handover. Manifests contain them, and those of the
  /// next process must agree.
  func noteRenditions(_ state: borrowing State) {
    guard state.life.isLeaving, state.life.phase == .reconnecting, let stateStore, let record = state.life.record else {
      return
    }
    note(record, in: stateStore)
  }

  /// Responds to all waiting requests with the current state, because their connections are about to close.
  func letGo() {
    state.withLock { state in
      stamp.change()
      state.life.hasLetGo = true
      state.subscribers.waiting.wake(now: clock.monotonic(), with: { state.life.view() })
    }
  }
}

extension StreamSettings {
  /// What players learned from the settings, as text. An epoch can be resumed only when it is the same.
  var contract: String {
    let rungs = ladder.map(\.name) + (audio.map { [$0.coding.rawValue] } ?? [])
    return [
      "part \(partTarget.rescaled(to: 1000))", "segment \(segmentTarget.rescaled(to: 1000))", "\(targetDuration)",
      layout.rawValue, partAddressing.rawValue, rungs.joined(separator: " "),
    ].joined(separator: ", ")
  }
}

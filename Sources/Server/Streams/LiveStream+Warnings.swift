internal import Base
internal import FMP4
internal import Logging
internal import Publishing

/// What is wrong with a publication.
extension LiveStream {
  /// Records a warning about a publication, for the API.
  func warn(_ warning: PublicationWarning, from token: PublicationToken) {
    state.withLock { state in
      guard state.publisher.holder?.token == token else { return }
      // Another rendition of the audio is what it asks for.
      if case .rarelyPlayed = warning {
        guard state.life.epoch.audio == nil, !state.life.epoch.mayAddAudio else { return }
      }
      add(warning, &state)
    }
  }

  func add(_ warning: PublicationWarning, _ state: inout State) {
    guard state.warnings.add(warning) else { return }
    // The others were logged where they began.
    if case .rarelyPlayed = warning { logger.warning("\(warning.description)") }
    tell(warning.description, state)
  }

  /// Removes a warning about a publication.
  func withdraw(_ warning: PublicationWarning, from token: PublicationToken) {
    state.withLock { if $0.publisher.holder?.token == token { $0.warnings.withdraw(warning) } }
  }

  /// Counts a sample that arrived and could not be used.
  func lost(_ kind: MediaKind, from token: PublicationToken) {
    state.withLock { state in
      if state.publisher.holder?.token == token { count(lost: kind, &state) }
    }
  }

  func count(lost kind: MediaKind, _ state: inout State) {
    state.publisher.countLost(kind)
    state.life.epoch.lost.count(kind)
  }
}

internal import Synchronization

/// What a folder above makes of an epoch for its viewers and keeps here: it goes with the epoch. This folder knows no
/// playlist.
final class EpochRenderings: Sendable {
  private let kept = Mutex<(any AnyObject & Sendable)?>(nil)

  /// What is kept; made when somebody first asks for it.
  func kept<Kept: AnyObject & Sendable>(_ make: @Sendable () -> Kept) -> Kept {
    kept.withLock { kept in
      if let known = kept as? Kept { return known }
      let made = make()
      kept = made
      return made
    }
  }
}

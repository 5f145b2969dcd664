internal import Synchronization

/// Holds renderings of an epoch (playlists, manifests) for the code that makes them; they are freed with the epoch. The code
/// in this folder does not know playlists.
package final class EpochRenderings: Sendable {
  private let kept = Mutex<(any AnyObject & Sendable)?>(nil)

  /// The stored object; made at the first call.
  package func kept<Kept: AnyObject & Sendable>(_ make: @Sendable () -> Kept) -> Kept {
    kept.withLock { kept in
      if let known = kept as? Kept { return known }
      let made = make()
      kept = made
      return made
    }
  }
}

/// Why there is no JPEG of a key frame.
package struct StillImageError: Error, Sendable, CustomStringConvertible {
  package enum Cause: Sendable {
    /// The key frame: trying again is in vain.
    case sample
    /// The machine, which gives no worker now.
    case machine
  }

  package let cause: Cause
  package let description: String

  init(_ cause: Cause, _ description: String) {
    self.cause = cause
    self.description = description
  }
}

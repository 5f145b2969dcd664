/// Why a key frame could not be made into a JPEG.
package struct StillImageError: Error, Sendable, CustomStringConvertible {
  package enum Cause: Sendable {
    /// The key frame is unusable. A retry would fail too.
    case sample
    /// The system could not start a worker.
    case machine
  }

  package let cause: Cause
  package let description: String

  init(_ cause: Cause, _ description: String) {
    self.cause = cause
    self.description = description
  }
}

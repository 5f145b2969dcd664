/// The bounds on values that a peer sends.
enum AMFLimits {
  /// Levels of objects and arrays within each other.
  static let depth = 16
  /// Values of one message, and names of one class.
  static let nodes = 4096
}

/// Limits of values from a peer.
enum AMFLimits {
  /// Nesting depth of objects and arrays.
  static let depth = 16
  /// Values per message, and names per class.
  static let nodes = 4096
}

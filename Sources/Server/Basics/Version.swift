internal import Ingest

/// What this program is called and which release it is.
enum Version {
  static let name = "weir"
  static let number = "0.1.0"

  /// For people: name, release and licence, and the library whose licence counts for the binary as well.
  static var text: String {
    """
    \(name) \(number), Apache License 2.0
    linked with \(CaptureLibrary.description)
    """
  }
}

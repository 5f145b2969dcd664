internal import Ingest

/// What this program is called and which release it is.
enum Version {
  static let name = "weir"
  static let number = "0.1.0"

  /// One line for people: name, release and the libraries that decide about licence and behaviour.
  static var line: String { "\(name) \(number) (\(CaptureLibrary.description))" }
}

/// A place in a file: line and column, both counted from 1.
package struct FilePlace: Sendable, Hashable, CustomStringConvertible {
  var file: String
  var line: Int
  var column: Int

  /// `weir.yaml:3:5`
  package var description: String { "\(file):\(line):\(column)" }

  /// An error at this place, of one line.
  func error(_ what: String, _ reason: String, _ advice: String) -> ConfigurationError {
    let what = what.isEmpty ? "" : "\(what): "
    return ConfigurationError(.usage, "\(self): \(what)\(reason); \(advice)")
  }
}

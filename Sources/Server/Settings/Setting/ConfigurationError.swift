/// Why weir does not start, in one line: what failed, with which value, why, and what to do.
package struct ConfigurationError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kind of mistake, which determines the exit status.
  package enum Kind: Sendable, Hashable {
    /// weir was called wrongly: an unknown flag, a value that does not parse, settings that contradict each other.
    case usage
    /// The settings are valid but this machine does not allow them: a busy port, a missing folder, an unreadable certificate.
    case configuration
  }

  var kind: Kind
  /// One line of text without a line break.
  package var description: String

  package init(_ kind: Kind, _ description: String) {
    self.kind = kind
    self.description = description
  }

  /// The status that the process exits with: 2 for usage, 78 (`EX_CONFIG` of sysexits.h) for configuration.
  package var exitCode: Int32 {
    switch kind {
    case .usage: 2
    case .configuration: 78
    }
  }
}

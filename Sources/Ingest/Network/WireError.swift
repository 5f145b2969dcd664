/// Why a peer's bytes cannot be served; ends that peer's connection and nothing else.
struct WireError: Error, Sendable, Hashable, CustomStringConvertible {
  enum Code: Sendable, Hashable {
    /// The bytes break the protocol.
    case malformed
    /// A limit on what one peer may ask for is passed.
    case limit
    /// Lawful, but not something weir takes.
    case unsupported
  }

  var code: Code
  /// One line: what, with which value, why.
  var reason: String

  init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  var description: String { reason }
}

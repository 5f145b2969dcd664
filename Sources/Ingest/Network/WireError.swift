/// Why a peer's bytes cannot be handled. Ends that peer's connection only.
struct WireError: Error, Sendable, Hashable, CustomStringConvertible {
  enum Code: Sendable, Hashable {
    /// The bytes break the protocol.
    case malformed
    /// The peer exceeded a limit.
    case limit
    /// Valid, but not supported by weir.
    case unsupported
  }

  var code: Code
  /// One line: what failed, the value, and why.
  var reason: String

  init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  var description: String { reason }
}

/// Why a peer's bytes cannot be handled. Ends that peer's connection only.
package struct WireError: Error, Sendable, Hashable, CustomStringConvertible {
  package enum Code: Sendable, Hashable {
    /// The bytes break the protocol.
    case malformed
    /// The peer exceeded a limit.
    case limit
    /// Valid, but not supported by weir.
    case unsupported
  }

  package var code: Code
  /// One line: what failed, the value, and why.
  package var reason: String

  package init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }

  package var description: String { reason }
}

/// Why an offer is not answered. One line for its sender, which may stand in an error of HTTP.
package struct OfferError: Error, Hashable, CustomStringConvertible {
  package enum Code: Sendable {
    /// It is no session description, or exceeds a limit.
    case malformed
    /// It is one, and weir cannot take what it offers.
    case unacceptable
    /// It is a viewer's, and nothing of the stream fits it.
    case unfitting
  }

  package var code: Code
  package var reason: String

  init(_ code: Code, _ reason: String) { (self.code, self.reason) = (code, reason) }

  package var description: String { reason }
}

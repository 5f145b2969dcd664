/// A number for a client: one address may be many clients, which User-Agent tells apart as well as can be.
package struct ClientID: Hashable, Sendable {
  package let number: Int
  /// The address that it comes from.
  package let host: NetworkAddress?

  package init(number: Int, host: NetworkAddress? = nil) {
    self.number = number
    self.host = host
  }
}

/// Number of a client. One address may have several clients; the User-Agent separates them as far as possible.
package struct ClientID: Hashable, Sendable {
  package let number: Int
  /// The client's address.
  package let host: NetworkAddress?

  package init(number: Int, host: NetworkAddress? = nil) {
    self.number = number
    self.host = host
  }
}

internal import Ingest

/// A number for a client: one address may be many clients, which User-Agent tells apart as well as can be.
struct ClientID: Hashable, Sendable {
  let number: Int
  /// The address that it comes from.
  let host: NetworkAddress?

  init(number: Int, host: NetworkAddress? = nil) {
    self.number = number
    self.host = host
  }
}

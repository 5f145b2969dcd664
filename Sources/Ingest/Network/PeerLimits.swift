/// How many strangers one address may keep at the door. Only connections that have not published count, and only
/// failures take from the bucket: wrong keys, and bytes that break the protocol. A publisher that was admitted never does, nor
/// whoever leaves without a word.
package struct PeerLimits: Sendable {
  /// Connections of one address that have not published yet.
  package var strangersPerAddress = 256
  /// Connections of all addresses that have not published yet.
  package var strangers = 8192
  /// All connections of one address that is no trusted proxy; nil for any number.
  package var connectionsPerAddress: Int?
  /// Failures that an address may have at once.
  package var failureBurst = 100.0
  /// Failures that it is forgiven in a second.
  package var failuresPerSecond = 5.0
  /// Addresses that are remembered; the oldest is forgotten first.
  package var addresses = 65_536

  package init() {}
}

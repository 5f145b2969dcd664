/// A publication that did not begin, or that ended because weir does not take what it sends; for whoever looks for the
/// reason later.
package struct RefusedPublication: Sendable, Hashable {
  /// What it named, printable and bounded; nil where it did not come so far.
  package var stream: String?
  package var protocolName: String
  /// Address and port.
  package var remoteAddress: String
  /// As `PublishRequest.host`.
  package var host: String?
  /// One line; it may name the publisher that holds the stream, with its address.
  package var reason: String
  /// The same without anybody's address.
  package var publicReason: String

  package init(
    stream: String?, protocolName: String, remoteAddress: String, host: String?, reason: String, publicReason: String
  ) {
    self.stream = stream
    self.protocolName = protocolName
    self.remoteAddress = remoteAddress
    self.host = host
    self.reason = reason
    self.publicReason = publicReason
  }

  package init(_ refusal: PublishRefusal, of request: PublishRequest) {
    self.init(
      stream: request.stream.description, protocolName: request.protocolName, remoteAddress: request.remoteAddress,
      host: request.host, reason: refusal.description, publicReason: refusal.publicDescription)
  }
}

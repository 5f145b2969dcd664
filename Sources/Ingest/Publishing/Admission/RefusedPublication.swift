/// A publication that did not begin, or that ended because weir does not support its media. Kept to show the reason
/// later.
package struct RefusedPublication: Sendable, Hashable {
  /// The requested stream, printable and limited in length. Nil if none was requested yet.
  package var stream: String?
  package var protocolName: String
  /// Address and port.
  package var remoteAddress: String
  /// As `PublishRequest.host`.
  package var host: String?
  /// One line. It may contain the address of the publisher that uses the stream.
  package var reason: String
  /// The reason without any address.
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

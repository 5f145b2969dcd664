/// The door between publishers and streams: protocols knock, the server's registry answers.
package protocol PublishGate: Sendable {
  /// Admits a publisher to the stream it names, or says why not. May take the name over from another publisher.
  func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink
  /// Takes note of a publication that the protocol refused, or that ended because of what it sent, without blocking.
  func note(_ refused: RefusedPublication)
}

extension PublishGate {
  package func note(_ refused: RefusedPublication) {}
}

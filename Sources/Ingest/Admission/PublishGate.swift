/// Admission of publishers to streams: protocols ask, the server's registry decides.
package protocol PublishGate: Sendable {
  /// Admits a publisher to the requested stream, or throws why not. May take the name over from another publisher.
  func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink
  /// Records a publication that the protocol refused, or that ended because of its data. Does not block.
  func note(_ refused: RefusedPublication)
}

extension PublishGate {
  package func note(_ refused: RefusedPublication) {}
}

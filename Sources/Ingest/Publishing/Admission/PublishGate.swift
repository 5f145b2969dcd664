/// Admission of publishers to streams: protocols ask, the server's registry decides.
package protocol PublishGate: Sendable {
  /// Admits a publisher to the requested stream, or throws why not. May take the name over from another publisher.
  func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink
  /// Opens an account of what one of the server's own sources holds while no publication counts it: before it is admitted, and off
  /// air. `end` is called at most once, from any thread, when all publishers hold too much. Nil if nothing is counted.
  func account(of stream: StreamName, end: @escaping @Sendable (_ reason: String) -> Void) -> (any HeldBytes)?
  /// Records a publication that the protocol refused, or that ended because of its data. Does not block.
  func note(_ refused: RefusedPublication)
}

/// Bytes that count until it is released.
package protocol HeldBytes: AnyObject, Sendable {
  /// As `MediaSink.mostHeldAtStart`.
  var mostAtStart: Int { get }
  /// As `MediaSink.holds`.
  func hold(_ bytes: Int)
}

extension PublishGate {
  package func account(
    of stream: StreamName, end: @escaping @Sendable (_ reason: String) -> Void
  ) -> (any HeldBytes)? { nil }
  package func note(_ refused: RefusedPublication) {}
}

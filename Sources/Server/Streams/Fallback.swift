package import Publishing

/// What takes the place of a publisher that is away.
package enum Fallback: Sendable, Hashable {
  /// The test pattern.
  case test
  /// A film or a picture of this machine, in a loop.
  case file(path: String)
  /// The publisher of another stream.
  case stream(StreamName)
}

/// Starts the media of fallbacks. Safe to use from any thread.
package protocol FallbackSources: Sendable {
  /// Begins to publish through the gate. Nil where that is not possible now: another stream is away itself.
  func begin(_ fallback: Fallback, of stream: StreamName, through gate: any PublishGate) -> (any FallbackRun)?
}

/// The media of a fallback while it is published.
package protocol FallbackRun: AnyObject, Sendable {
  /// Ends it soon. Does not block.
  func stop()
}

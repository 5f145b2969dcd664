package import FMP4

/// Where an admitted publication's events go. Calls come from one thread at a time, in order; the first event is
/// `.clock` or `.tracks`, the last is `.end`, and nothing follows it.
package protocol MediaSink: AnyObject, Sendable {
  /// Takes the event, without blocking. `.closed` says that this publication is over for the sink (taken over,
  /// refused in mid-stream, shutting down) and why: the publisher is told and its connection is closed.
  func receive(_ event: MediaEvent) -> SinkVerdict
  /// Takes note of a picture or a frame of audio that came and could not be used, without blocking.
  func lost(_ kind: MediaKind)
  /// Takes note of what is wrong with the publication, without blocking. It has been logged already; here it is for
  /// pages and the API.
  func warn(_ warning: PublicationWarning)
  /// What was warned of is over.
  func withdraw(_ warning: PublicationWarning)
}

extension MediaSink {
  package func lost(_ kind: MediaKind) {}
}

/// What a sink says to an event.
package enum SinkVerdict: Sendable, Equatable {
  case accepted
  case closed(EndReason)
}

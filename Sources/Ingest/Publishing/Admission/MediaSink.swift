public import FMP4

/// Receives the events of an admitted publication. Calls are in order and not concurrent. The first event is `.clock`
/// or `.tracks`. The last one is `.end`, and no call follows it.
package protocol MediaSink: AnyObject, Sendable {
  /// The longest distance of key frames with which segments keep to their target. Nil if there are no segments.
  var keyFrameDistance: MediaTime? { get }
  /// Whether somebody gets each sample as it comes: viewers by WebRTC. Parts are cut at frames of video, so for them audio may
  /// come with the next frame.
  var passesSamplesOn: Bool { get }
  /// The publisher's address, for limits, if it showed no key that holds; nil for any other.
  var anonymousHost: String? { get }
  /// The publisher is connected, where its request said that its connection was awaited.
  func connected()
  /// The most bytes of media that may wait for the start of the publication, as of now. With more it begins without the tracks
  /// that are missing. It changes with what others hold.
  var mostHeldAtStart: Int { get }
  /// Takes an event without blocking. `.closed` ends the publication with a reason (replaced, refused while running,
  /// shutdown). The publisher is told and its connection is closed.
  func receive(_ event: MediaEvent) -> SinkVerdict
  /// Counts a received video or audio frame that was unusable, without blocking.
  func lost(_ kind: MediaKind)
  /// Takes a warning about the publication, without blocking. It has been logged already; here it is for web pages and
  /// the API.
  func warn(_ warning: PublicationWarning)
  /// Withdraws a warning that no longer applies.
  func withdraw(_ warning: PublicationWarning)
  /// Takes the figures of the publisher's connection, about each second, without blocking.
  func measured(_ figures: LinkFigures)
  /// Takes what the publication carries beside its samples, without blocking.
  func carries(_ event: InBandEvent)
  /// Takes how many bytes the publication's protocol holds: of messages that are not finished, and of media that waits for the
  /// start. Told when they have changed by `PublicationLimits.heldStep`. Does not block. If they are too many, a publication
  /// ends by `PublishRequest.onEviction`.
  func holds(_ bytes: Int)
}

extension MediaSink {
  package var keyFrameDistance: MediaTime? { nil }
  package var passesSamplesOn: Bool { false }
  package var anonymousHost: String? { nil }
  package func connected() {}
  package var mostHeldAtStart: Int { .max }
  package func lost(_ kind: MediaKind) {}
  package func measured(_ figures: LinkFigures) {}
  package func carries(_ event: InBandEvent) {}
  package func holds(_ bytes: Int) {}
}

/// Response of a sink to an event.
public enum SinkVerdict: Sendable, Equatable {
  case accepted
  case closed(EndReason)
}

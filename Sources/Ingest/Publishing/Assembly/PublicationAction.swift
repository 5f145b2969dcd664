package import FMP4
package import Logging

/// Actions that a publication asks for, in order.
package enum PublicationAction: Sendable {
  /// An event of the publication.
  case event(MediaEvent)
  /// An unusable video or audio frame.
  case lost(MediaKind)
  /// What is carried beside the media.
  case inBand(InBandEvent)
  /// A warning for the sink.
  case warn(PublicationWarning)
  /// The warning no longer applies.
  case withdraw(PublicationWarning)
  case log(Logger.Level, String)
}

extension [PublicationAction] {
  /// A warning, and its line in the log.
  package mutating func tell(_ warning: PublicationWarning) {
    append(.log(.warning, warning.description))
    append(.warn(warning))
  }
}

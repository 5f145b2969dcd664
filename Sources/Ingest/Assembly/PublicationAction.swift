internal import FMP4
internal import Logging

/// What a publication wants done, in order.
enum PublicationAction {
  /// Something happened to it.
  case event(MediaEvent)
  /// A picture or a frame of audio cannot be used.
  case lost(MediaKind)
  /// Its sink should know, too.
  case warn(PublicationWarning)
  /// It is over.
  case withdraw(PublicationWarning)
  case log(Logger.Level, String)
}

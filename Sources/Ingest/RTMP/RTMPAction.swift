internal import Logging
internal import NIOCore

/// What a session wants done, in order.
enum RTMPAction {
  /// Bytes for the peer; all answers to one piece of input come in one buffer.
  case send(ByteBuffer)
  /// The peer wants to publish: call `admit` or `refuse`. Input is not read until then.
  case ask(CommandSession.PublishIntent)
  /// Something of the publication.
  case media(PublicationAction)
  case log(Logger.Level, String)
  /// The peer asked for what cannot be, and has heard why.
  case refused(String)
  /// Let the peer read what was sent, and close.
  case close(Ending)

  /// How a connection ends from our side.
  enum Ending: Equatable {
    /// The peer did what is not allowed; its address is held to account.
    case failure
    /// Nobody is to blame.
    case quiet
  }
}

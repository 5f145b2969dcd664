internal import Logging
internal import NIOCore
internal import Publishing

/// Actions that a session asks for, in order.
enum RTMPAction {
  /// Bytes for the peer. All responses to one input are in one buffer.
  case send(ByteBuffer)
  /// The peer wants to publish: call `admit` or `refuse`. Input is not read until then.
  case ask(CommandSession.PublishIntent)
  /// An action of the publication.
  case media(PublicationAction)
  case log(Logger.Level, String)
  /// The request was refused, and the peer has got the reason.
  case refused(String)
  /// Let the peer read the bytes sent, then close the connection.
  case close(Ending)

  /// Why the server closes a connection.
  enum Ending: Equatable {
    /// The peer broke the rules; this counts as a failure of its address.
    case failure
    /// The peer did nothing wrong.
    case quiet
  }
}

/// State and counters of a source that receives a transport stream, since its start.
package struct ReceptionStatus: Sendable, Hashable {
  package enum State: Sendable, Hashable {
    /// No sender is followed.
    case waiting
    /// Media of a sender arrives.
    case receiving
    /// Datagrams are ignored for some seconds, for a reason.
    case paused(String)
  }

  package var state = State.waiting
  /// Address and port of the sender that is followed, or was last.
  package var sender: String?
  /// Datagrams that were taken, and their bytes.
  package var datagrams: Int64 = 0
  package var bytes: Int64 = 0
  /// Datagrams without packets of a transport stream.
  package var foreign: Int64 = 0
  /// Datagrams of other senders than the one that is followed.
  package var unfollowed: Int64 = 0
  /// Of the present sender, or of the last one: packets, and places at which packets are missing.
  package var packets = 0
  package var gaps = 0
  /// Packets that are damaged, or scrambled.
  package var damaged = 0
  package var scrambled = 0

  package init() {}
}

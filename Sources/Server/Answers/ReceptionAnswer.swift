package import Local

/// What a source received from a network, since its start.
package struct ReceptionAnswer: APIObject {
  let state: String
  /// Why datagrams are ignored for the moment.
  let problem: String?
  let sender: String?
  let datagrams: Int64
  let bytes: Int64
  /// Datagrams that were dropped: without packets of MPEG-TS, and of other senders.
  let foreign: Int64
  let unfollowed: Int64
  /// Of the present sender: packets of the transport stream, places at which some are missing, damaged ones, scrambled ones.
  let packets: Int
  let gaps: Int
  let damaged: Int
  let scrambled: Int

  package init(_ status: ReceptionStatus) {
    (state, problem) =
      switch status.state {
      case .waiting: ("waiting", nil)
      case .receiving: ("receiving", nil)
      case .paused(let reason): ("paused", reason)
      }
    (sender, datagrams, bytes) = (status.sender, status.datagrams, status.bytes)
    (foreign, unfollowed) = (status.foreign, status.unfollowed)
    (packets, gaps, damaged, scrambled) = (status.packets, status.gaps, status.damaged, status.scrambled)
  }
}

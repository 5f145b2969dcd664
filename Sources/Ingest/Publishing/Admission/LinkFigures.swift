/// Figures of a publisher's connection since its beginning, as its protocol counts them (SRT).
package struct LinkFigures: Sendable, Hashable {
  /// Round trip in microseconds.
  package var roundTrip: UInt32 = 0
  /// Packets that came, with those sent again.
  package var received: UInt64 = 0
  /// Packets that were missing at first.
  package var lost: UInt64 = 0
  /// Packets that came again because they were missing.
  package var retransmitted: UInt64 = 0
  /// Packets that did not come in time. They are missing in the media.
  package var dropped: UInt64 = 0
  /// Packets that could not be decrypted.
  package var undecrypted: UInt64 = 0
  /// Media that waits for its time, in milliseconds.
  package var buffered: UInt32 = 0
  /// The latency that both sides agreed on, in milliseconds.
  package var latency: UInt32 = 0
  /// Estimated bandwidth of the path, in bits per second.
  package var bandwidth: UInt64 = 0

  package init() {}
}

/// Limits of a source that receives datagrams. Anybody may send to its port.
///
/// Memory of one source, worst case: its reads (`datagramBytes` × `datagramsAtOnce`), the socket's buffer in the system,
/// one transport stream (`MPEGTSLimits`), and in the first two seconds the publication's samples
/// (`PublicationLimits.heldBytes`), once more while it is being admitted.
enum DatagramLimits {
  /// Bytes of a datagram: a frame of the largest Ethernet. The rest of a larger one is lost.
  static let datagramBytes = 9216
  /// Datagrams that one system call reads.
  static let datagramsAtOnce = 8
  /// Wanted bytes of the socket's buffer; the system may allow fewer (`net.core.rmem_max`).
  static let socketBytes = 4 << 20

  // Time, in nanoseconds.

  /// Without a datagram of the sender: then its connection counts as lost.
  static let silence: Int64 = 5_000_000_000
  /// Without a datagram of the sender while another one sends: then the other one is followed.
  static let handover: Int64 = 1_000_000_000
  /// Datagrams are ignored after the publication was refused or ended by the server.
  static let pause: Int64 = 5_000_000_000
  /// A sender whose stream could not be used is followed again after this time only.
  static let shunning: Int64 = 30_000_000_000
  /// What lies in a socket that is being closed is read, so many times with a pause at most.
  static let closingTurns = 64
  static let closingTurn: Int64 = 1_000_000
  /// Between two checks of the silence.
  static let check: Int64 = 250_000_000
  /// Without a check: then the loop stood still, and silence counts from its end.
  static let halt: Int64 = 2 * check
}

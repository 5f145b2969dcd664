internal import NIOCore
internal import Publishing

/// What a transport stream yields, in order.
enum TransportEvent {
  /// The programmes of the stream have changed: their numbers in the order of the association table.
  case programs([UInt16])
  /// A programme that is followed has begun, or its elementary streams have changed.
  case program(ProgramMap)
  /// A programme that was followed is gone.
  case programEnded(UInt16)
  /// From the elementary stream with that PID.
  case element(program: UInt16, pid: UInt16, ElementEvent)
  /// Its media time is not known yet.
  case splice(program: UInt16, StreamCue)
  /// The programme's clock jumps, as its sender announces.
  case discontinuity(program: UInt16)
}

/// Counters of a transport stream since its beginning.
package struct TransportCounts: Hashable {
  /// Packets of 188 bytes, null packets included.
  package var packets = 0
  /// Bytes that are no part of a packet.
  var skippedBytes = 0
  /// Packets that are marked as erroneous, have lost their first byte, or are of a form that does not exist.
  package var damagedPackets = 0
  /// Places at which packets of a PID are missing.
  package var gaps = 0
  var duplicates = 0
  /// Scrambled packets, and scrambled PES packets. They are dropped.
  package var scrambled = 0
  /// Sections with a wrong checksum, of a length that does not exist, or that end within a field.
  var damagedSections = 0
  /// Those of `damagedSections` that are cues.
  var damagedCues = 0
  var encryptedCues = 0
  /// PES packets without a readable header.
  var malformedPES = 0
  /// Packets of PIDs that no followed table names, or whose content is not read.
  var unreadPackets = 0
  /// Times that a track was dropped because it held too many bytes.
  var overflows = 0
}

/// Limits of an MPEG transport stream. A sender that exceeds one loses the track or the table concerned, nothing else.
///
/// Memory of one stream, worst case: unfinished access units and audio frames of all tracks (`heldBytes`), video units
/// that wait for their decode times (part of `heldBytes`), unfinished sections of the programmes' maps and of cues, and
/// cues before the first access unit, below 5 KiB each. The server bounds what all publishers hold together
/// (`MediaSink.holds`).
enum MPEGTSLimits {
  /// Programmes of the program association table that are followed. Further ones are not.
  static let programs = 32
  /// Programmes of one stream that are published at a time, each under its own name. Further ones are not.
  static let publishedPrograms = 8
  /// Elementary streams of a programme that are followed.
  static let elements = 64
  /// Elementary streams, or programmes, that are named where nothing of a stream can be published.
  static let namedElements = 8
  /// Tracks of one kind of a programme. Further ones are left out.
  static let tracksOfKind = 16
  /// Bytes of one section, with header and checksum (ISO/IEC 13818-1 §2.4.4.11).
  static let sectionBytes = 4096
  /// Bytes of one video access unit.
  static let accessUnitBytes = 8 << 20
  /// Unparsed bytes of an audio track: more than the largest frame of any codec.
  static let audioBytes = 64 << 10
  /// Cues that wait for the first access unit.
  static let earlyCues = 16
  /// Unfinished bytes of all tracks.
  static let heldBytes = 24 << 20
  /// PES packets of a track that may begin before an access unit does.
  static let timeMarks = 64
  /// Video units that wait until it is known whether their decode times have to be derived.
  static let heldUnits = 18
}

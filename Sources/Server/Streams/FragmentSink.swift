internal import FMP4
internal import Storage

/// Whatever follows a stream from its beginning: a recorder, a folder of segments. It is told in order, while the
/// stream's lock is held, so it hands the work to a thread of its own and returns at once.
protocol FragmentSink: AnyObject, Sendable {
  func receive(_ event: StoredEvent)

  /// From that media time on it goes on elsewhere, with a segment that begins there or later: all tracks of the one before
  /// are to end together.
  var splitsAt: MediaTime? { get }

  /// It tells others the times of day of each complete segment.
  var tellsDates: Bool { get }

  /// It was told that the stream is over, and still has files open.
  var isClosing: Bool { get }
}

extension FragmentSink {
  var splitsAt: MediaTime? { nil }
  var tellsDates: Bool { false }
  var isClosing: Bool { false }
}

/// What happens to a stream once its bytes are in memory.
enum StoredEvent: Sendable {
  case initialization(InitSegment)
  case fragment(PublishedFragment)
  /// The segment that the fragments since the last `startsSegment` make up is complete: the newest of the view.
  case segmentEnd(EpochView)
  case clock(WallClockAnchor)
  /// A better clock for all that has come: nobody was told the old times of day.
  case redated(WallClockAnchor)
  case discontinuity
  case end(EndReason)
}

/// The end of a segment, for those who do not keep windows: views hold the media of all that is in memory.
struct SegmentEnd: Sendable, Hashable {
  /// Media sequence number.
  var number: Int
  /// How many fragments it has.
  var fragmentCount: Int
  /// EXT-X-TARGETDURATION of its stream, in seconds; nil until it is decided.
  var targetDuration: Int?

  /// Of the newest segment of a view; nil when it has none.
  init?(_ view: EpochView) {
    guard let newest = view.window.segments.last else { return nil }
    number = newest.sequenceNumber
    fragmentCount = newest.fragments.count
    targetDuration = view.window.targetDuration
  }
}

/// A fragment as it lies in memory.
struct PublishedFragment: Sendable {
  /// Its samples' sizes and times; the payloads are gone, their bytes are in `range`.
  var fragment: Fragment
  /// `moof`, `mdat` header and media of all tracks, interleaved.
  var range: FileRange
  /// The same of the first track of each kind; empty where it has nothing of them.
  var shown: [BodyPiece] = []
  /// Bytes of `range` before the first byte of media.
  var headLength: Int
  /// CRC-32C of the bytes in `range`.
  var checksum: UInt32
  var sequenceNumberOfSegment: Int
  /// How often the epoch's timeline broke up to the beginning of its segment.
  var breaksBefore = 0
}

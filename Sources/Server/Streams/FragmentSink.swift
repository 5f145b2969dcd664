package import FMP4
package import Storage

/// Follows a stream from its start, like a recorder or a segment folder. Receives events in order, while the stream's lock is
/// held; so it passes the work to its own thread and returns at once.
package protocol FragmentSink: AnyObject, Sendable {
  func receive(_ event: StoredEvent)

  /// The media time of a split: the sink continues elsewhere with a segment that begins then or later. All tracks of the
  /// previous segment must end together.
  var splitsAt: MediaTime? { get }

  /// The sink publishes the times of day of each complete segment.
  var tellsDates: Bool { get }

  /// What is wrong with it at present, as a sentence; nil if nothing is.
  var warning: String? { get }

  /// The sink ends when the publisher stops, though the stream waits for the next one.
  var endsWithPublication: Bool { get }

  /// The sink leaves out what a fallback put in a publisher's place.
  var leavesOutStandIns: Bool { get }

  /// The sink received the end event and still has open files.
  var isClosing: Bool { get }
}

extension FragmentSink {
  package var splitsAt: MediaTime? { nil }
  package var tellsDates: Bool { false }
  package var warning: String? { nil }
  package var endsWithPublication: Bool { false }
  package var leavesOutStandIns: Bool { false }
  package var isClosing: Bool { false }
}

/// What happens to a stream after its bytes were stored in memory.
package enum StoredEvent: Sendable {
  case initialization(InitSegment)
  case fragment(PublishedFragment)
  /// The segment of the fragments since the last `startsSegment` is complete. It is the newest of the view.
  case segmentEnd(EpochView)
  case clock(WallClockAnchor)
  /// A corrected clock for all media so far. The old times of day were not published.
  case redated(WallClockAnchor)
  case discontinuity(TimelineBreak)
  case end(EndReason)
}

/// Why the timeline of a stream breaks.
package enum TimelineBreak: Sendable, Hashable {
  /// Its publisher was lost, or another one takes over.
  case publisher
  /// The publisher's timestamps jumped.
  case timestamps
  /// Tracks came, went or changed.
  case tracks
  /// Times of day are set again, because the publisher's clock is off. The media goes on, and nothing is missing.
  case clock
}

/// Frames that came and could not be used.
package struct LostFrames: Sendable, Hashable, CustomStringConvertible {
  var video = 0
  var audio = 0

  package init(video: Int = 0, audio: Int = 0) {
    (self.video, self.audio) = (video, audio)
  }

  mutating func count(_ kind: MediaKind) {
    switch kind {
    case .video: video &+= 1
    case .audio: audio &+= 1
    }
  }

  package var description: String { "\(video) frames of video and \(audio) of audio" }

  package static func - (a: LostFrames, b: LostFrames) -> LostFrames {
    LostFrames(video: a.video &- b.video, audio: a.audio &- b.audio)
  }
}

/// The end of a segment, for sinks that do not keep views: a view keeps the media of all segments in memory.
package struct SegmentEnd: Sendable, Hashable {
  /// Media sequence number.
  package var number: Int
  /// How many fragments it has.
  package var fragmentCount: Int
  /// EXT-X-TARGETDURATION of its stream, in seconds; nil until it is decided.
  package var targetDuration: Int?
  /// Closed captions that its stream declares so far.
  package var captions: CaptionDeclarations

  /// For the newest segment of a view; nil when it has none.
  package init?(_ view: EpochView) {
    guard let newest = view.window.segments.last else { return nil }
    number = newest.sequenceNumber
    fragmentCount = newest.fragments.count
    targetDuration = view.window.targetDuration
    captions = view.window.captions
  }
}

/// A fragment that is stored in memory.
package struct PublishedFragment: Sendable {
  /// Sizes and times of its samples. The payloads were removed; their bytes are in `range`.
  package var fragment: Fragment
  /// `moof`, `mdat` header and media of all tracks, interleaved.
  package var range: FileRange
  /// The same for the first track of each kind; empty when the fragment has no samples of them.
  package var shown: [BodyPiece] = []
  /// The fragment in the layout of each track alone, when the stream has several tracks of a kind.
  var alone: [TrackID: [BodyPiece]] = [:]
  /// Bytes of `range` before the media.
  package var headLength: Int
  /// CRC-32C of the bytes in `range`.
  package var checksum: UInt32
  package var sequenceNumberOfSegment: Int
  /// Breaks of the epoch's timeline before its segment.
  package var breaksBefore = 0
  /// Changes of the default tracks before its segment that did not break the timeline. They break the interleaved layout.
  package var changesOfDefaultsBefore = 0
  /// Frames that its epoch has lost so far.
  package var lostBefore = LostFrames()

  /// The fragment with some of its tracks; with the first of each kind for nil.
  func pieces(of tracks: [TrackID]?) -> [BodyPiece] { tracks.map { $0.flatMap { alone[$0] ?? [] } } ?? shown }
}

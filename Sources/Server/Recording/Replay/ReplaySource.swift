internal import Base
internal import FMP4
internal import HTTP
package import NIOCore
package import Publishing
package import RecordingFiles
internal import RecordingFormat
package import Storage
package import Streams

/// A recording or a time-shift buffer that can be replayed: its index and its file, finished or being written. Rendered documents
/// are kept until the content changes. Calls may wait for the disk, except `add` and the other calls that report what is written.
package final class ReplaySource: Sendable {
  package let stream: StreamName
  /// The recording's name without its ending; nil for a time-shift buffer.
  package let name: String?
  /// The epoch of the stream; nil if the recording was read from a file.
  package let epoch: String?
  let reader: RecordingFileReader
  /// Accounts for the file's descriptor once its recorder has ended; nil where that is counted elsewhere.
  let claim: FileClaim?
  private let state: RankedMutex<State>

  struct State: Sendable {
    var index: RecordingIndex
    /// Nothing follows.
    var isOver: Bool
    var lines: [Rendition: RecordedMediaPlaylist] = [:]
    var rendered: [ReplayDocument: (count: Int, isOver: Bool, response: PreencodedResponse)] = [:]
    var bandwidth = Bandwidth()
    var bandwidthCount = 0
  }

  /// A recording read from its file.
  init(stream: StreamName, name: String, file: SharedFile, index: RecordingIndex) {
    self.stream = stream
    self.name = name
    epoch = nil
    claim = nil
    reader = RecordingFileReader(file: file)
    state = RankedMutex(.replay, State(index: index, isOver: true))
  }

  /// A file being written.
  init(stream: StreamName, name: String?, epoch: String?, file: SharedFile, claim: FileClaim? = nil) {
    self.stream = stream
    self.claim = claim
    self.name = name
    self.epoch = epoch
    reader = RecordingFileReader(file: file)
    state = RankedMutex(.replay, State(index: RecordingIndex(), isOver: false))
  }

  // MARK: Being written

  func change(to initSegment: InitSegment, at offset: UInt64) {
    state.withLock { $0.index.change(to: initSegment, at: offset) }
  }

  /// As `RecordingIndex.redate(by:)`.
  func redate(by anchor: WallClockAnchor) { state.withLock { $0.index.redate(by: anchor) } }

  /// A fragment of that many bytes has been written at that offset.
  func add(_ fragment: PublishedFragment, at offset: UInt64, length: Int, anchor: WallClockAnchor?) {
    let range = offset..<offset &+ UInt64(length)
    state.withLock {
      $0.index.add(
        fragment.fragment, number: fragment.sequenceNumberOfSegment, range: range, anchor: anchor,
        breaksBefore: fragment.breaksBefore, changesOfDefaultsBefore: fragment.changesOfDefaultsBefore)
    }
  }

  /// A segment is complete with that many fragments.
  func complete(_ end: SegmentEnd) {
    state.withLock {
      $0.index.complete(number: end.number, fragmentCount: end.fragmentCount)
      if let target = end.targetDuration { $0.index.targetDuration = target }
      $0.index.captions = end.captions
    }
  }

  /// The bytes after `length` are about to be cut off.
  func cut(at length: UInt64) {
    state.withLock { $0.index.cut(at: length) }
  }

  func breakTimeline() {
    state.withLock { $0.index.breakTimeline() }
  }

  func end() {
    state.withLock { state in
      state.index.finish()
      state.isOver = true
    }
  }

  /// The index as bytes, for the finished file.
  var stored: ByteBuffer { state.withLock { $0.index }.stored }

  // MARK: Reading

  package var isOver: Bool { state.withLock { $0.isOver } }

  package func withIndex<R: Sendable>(_ body: (borrowing RecordingIndex) -> R) -> R {
    state.withLock { body($0.index) }
  }

  /// `body` is called with the lock held.
  func withState<R>(_ body: (inout State) -> sending R) -> sending R { state.withLock { body(&$0) } }

  /// The init segment of a rendition, by its own version or by a later one that still has its tracks.
  package func initSegment(_ version: Int, _ rendition: Rendition) -> ByteBuffer? {
    let found = withIndex { index in
      index.versions.first { $0.number(of: rendition) <= version && version <= $0.number }?.tracks
    }
    guard let tracks = found else { return nil }
    let initSegment = InitSegment(version: version, tracks: tracks)
    guard rendition.kind != nil else { return initSegment.interleaved }
    return rendition.track(in: tracks).map(initSegment.single)
  }

  /// The bytes of a complete segment in a rendition; nil if it has nothing of it.
  package func pieces(ofSegment index: Int, _ rendition: Rendition) throws(RecordingFileReader.Unreadable)
    -> [BodyPiece]?
  {
    let found = withIndex { all -> (RecordingIndex.Segment, [TrackDescription], WallClockAnchor?)? in
      guard index >= 0, index < all.completeCount, let version = all.version(of: all.segments[index]) else {
        return nil
      }
      return (all.segments[index], version.tracks, all.anchor(at: index))
    }
    guard let (segment, tracks, anchor) = found else { return nil }
    let bytes = segment.offset..<segment.offset + UInt64(segment.length)
    let shown = rendition.kind == nil ? tracks.defaults.map(\.id) : rendition.track(in: tracks).map { [$0.id] } ?? []
    if rendition.kind == nil, shown.count == tracks.count { return try interleaved(bytes, tracks) }
    var pieces: [BodyPiece] = [
      .bytes(rendition.kind == nil ? FragmentBoxes.interleavedSegmentType : FragmentBoxes.singleSegmentType)
    ]
    try reader.walk(bytes, tracks: tracks) { step in
      guard case .fragment(let walked) = step else { return true }
      let begins = pieces.count == 1
      if let head = FragmentBoxes.head(of: walked.fragment, tracks: shown, clock: begins ? anchor : nil) {
        pieces.append(.bytes(head))
        for (run, offset) in zip(walked.fragment.runs, walked.mediaOffsets) where shown.contains(run.track) {
          pieces.append(.file(range(offset, run.byteCount)))
        }
      }
      return true
    }
    return pieces.count > 1 ? pieces : nil
  }

  /// The same, after the rendition's init segment.
  package func playablePieces(
    ofSegment index: Int, _ rendition: Rendition
  ) throws(RecordingFileReader.Unreadable) -> [BodyPiece]? {
    let version = withIndex { all in
      all.segments.indices.contains(index) ? all.version(of: all.segments[index])?.number : nil
    }
    guard let version, let head = initSegment(version, rendition), let pieces = try pieces(ofSegment: index, rendition)
    else { return nil }
    return [.bytes(head)] + pieces
  }

  /// The fragments as viewers received them live, without the seals between them in the file.
  private func interleaved(
    _ bytes: Range<UInt64>, _ tracks: [TrackDescription]
  ) throws(RecordingFileReader.Unreadable) -> [BodyPiece]? {
    var stretches: [Range<UInt64>] = []
    try reader.walk(bytes, tracks: tracks) { step in
      guard case .fragment(let walked) = step else { return true }
      if let last = stretches.last, last.upperBound == walked.offset {
        stretches[stretches.count - 1] = last.lowerBound..<walked.end
      } else {
        stretches.append(walked.offset..<walked.end)
      }
      return true
    }
    guard !stretches.isEmpty else { return nil }
    return [.bytes(FragmentBoxes.interleavedSegmentType)]
      + stretches.map { .file(range($0.lowerBound, Int($0.upperBound - $0.lowerBound))) }
  }

  func range(_ offset: UInt64, _ length: Int) -> FileRange {
    FileRange(file: reader.file, offset: Int(clamping: offset), length: length)
  }
}

internal import NIOCore

/// Builds fragments from the headers of a file, box by box. A value type: the caller reads the file.
package struct FragmentAssembler: Sendable {
  private var leader: TrackID?
  private var timescales: [TrackID: UInt32] = [:]
  private var defaults: [TrackID: FragmentReader.Defaults] = [:]
  /// The newest `prft` and `moof`, until their `mdat` is known to be complete.
  private var reference: (time: ProducerReferenceTime, offset: UInt64)?
  private var pending: (fragment: Fragment, offset: UInt64, mediaOffsets: [UInt64])?
  /// Presentation time at which the leading track's media ended.
  private var leaderEnd = MediaTime.zero

  package init() {}

  /// Whether a `moof` listed samples whose `mdat` has not come yet.
  package var hasPendingSamples: Bool { pending.map { !$0.fragment.runs.isEmpty } ?? false }

  /// Changes the tracks of the fragments that follow.
  package mutating func change(to tracks: [TrackDescription]) {
    leader = tracks.leader?.id
    timescales = Dictionary(tracks.map { ($0.id, $0.timescale) }, uniquingKeysWith: { first, _ in first })
  }

  /// Changes the tracks, and takes the defaults of fragment fields from the `moov`.
  package mutating func change(to tracks: [TrackDescription], movie: BoxView) {
    change(to: tracks)
    defaults = MovieReader.fragmentDefaults(movie, tracks: tracks)
  }

  /// Takes a `prft`, which belongs to the next fragment.
  package mutating func reference(_ box: BoxView) {
    reference = (try? ProducerReferenceTime(box)).map { ($0, box.header.range.lowerBound) }
  }

  /// Takes a `moof`.
  package mutating func head(_ box: BoxView) throws(BoxError) {
    let offset = box.header.range.lowerBound
    guard let leader else { throw BoxError(.missing("moov"), [], at: offset) }
    let number = try FragmentReader.sequenceNumber(box)
    let located = try FragmentReader.read(box, timescales: timescales, defaults: defaults)
    let runs = located.map(\.run)
    let own = runs.filter { $0.track == leader }
    var (start, end) = (leaderEnd, leaderEnd)
    if let first = own.first {
      start = MediaTime(ticks: own.map(\.earliestPresentationTime).min() ?? 0, timescale: first.timescale)
      end = MediaTime(ticks: own.map(\.presentationEnd).max() ?? 0, timescale: first.timescale)
    }
    leaderEnd = end
    let fragment = Fragment(
      sequenceNumber: number, startsSegment: reference != nil, isIndependent: own.first?.samples.first?.isSync ?? false,
      leader: leader, runs: runs, payloads: [], start: start, duration: end - start, end: end)
    pending = (fragment, offset, located.map { offset &+ UInt64($0.offset) })
  }

  /// Takes a complete `mdat` and returns its fragment. Nil if it belongs to none.
  package mutating func media(_ box: BoxHeader) throws(BoxError) -> WalkedFragment? {
    guard let (fragment, offset, mediaOffsets) = pending else { return nil }
    pending = nil
    for (run, offset) in zip(fragment.runs, mediaOffsets) {
      guard offset >= box.payload.lowerBound, offset &+ UInt64(run.byteCount) <= box.range.upperBound else {
        throw BoxError(.invalid, [box.type], at: box.range.lowerBound)
      }
    }
    let clock = reference.flatMap { reference in
      timescales[reference.time.track].map { timescale in
        WallClockAnchor(
          mediaTime: MediaTime(ticks: reference.time.mediaTime, timescale: timescale),
          wallTime: reference.time.wallTime)
      }
    }
    let from = reference?.offset ?? offset
    reference = nil
    return WalkedFragment(
      fragment: fragment, offset: from, end: box.range.upperBound, mediaOffsets: mediaOffsets, clock: clock)
  }

  /// Drops the open fragment, because the next box does not continue it.
  package mutating func forgetPending() {
    pending = nil
    reference = nil
  }
}

/// A fragment of a file: the content of its headers and its place in the file.
package struct WalkedFragment: Sendable {
  /// The fragment without payloads. It starts a segment if a `prft` precedes it, as weir writes them.
  package var fragment: Fragment
  /// Byte range in the file: start of the first box and end of the last.
  package var offset: UInt64
  package var end: UInt64
  /// File offset of each run's media.
  package var mediaOffsets: [UInt64]
  /// Wall clock from its `prft`; nil without one.
  package var clock: WallClockAnchor?
}

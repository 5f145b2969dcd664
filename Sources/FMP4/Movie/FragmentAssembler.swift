internal import NIOCore

/// Puts together what the heads of a fragment say, box by box, for whoever walks over a file. A value; it knows no file.
struct FragmentAssembler: Sendable {
  private var leader: TrackID?
  private var timescales: [TrackID: UInt32] = [:]
  private var defaults: [TrackID: FragmentReader.Defaults] = [:]
  /// The newest `prft` and `moof`, until their `mdat` is seen to be whole.
  private var reference: (time: ProducerReferenceTime, offset: UInt64)?
  private var pending: (fragment: Fragment, offset: UInt64, mediaOffsets: [UInt64])?
  /// Where the leading track's media ended.
  private var leaderEnd = MediaTime.zero

  /// Samples have been told of whose media was not seen yet.
  var hasPendingSamples: Bool { pending.map { !$0.fragment.runs.isEmpty } ?? false }

  /// What follows has these tracks.
  mutating func change(to tracks: [TrackDescription]) {
    leader = tracks.leader?.id
    timescales = Dictionary(tracks.map { ($0.id, $0.timescale) }, uniquingKeysWith: { first, _ in first })
  }

  /// The same, with what the `moov` says that fragments may leave out.
  mutating func change(to tracks: [TrackDescription], movie: BoxView) {
    change(to: tracks)
    defaults = MovieReader.fragmentDefaults(movie, tracks: tracks)
  }

  /// A `prft`, which belongs to the fragment that follows.
  mutating func reference(_ box: BoxView) {
    reference = (try? ProducerReferenceTime(box)).map { ($0, box.header.range.lowerBound) }
  }

  /// A `moof`.
  mutating func head(_ box: BoxView) throws(BoxError) {
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

  /// An `mdat` that is whole: its fragment is, too. Nil where it belongs to none.
  mutating func media(_ box: BoxHeader) throws(BoxError) -> WalkedFragment? {
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
          wallNanoseconds: reference.time.wallNanoseconds)
      }
    }
    let from = reference?.offset ?? offset
    reference = nil
    return WalkedFragment(
      fragment: fragment, offset: from, end: box.range.upperBound, mediaOffsets: mediaOffsets, clock: clock)
  }

  /// What comes next does not continue this.
  mutating func forgetPending() {
    pending = nil
    reference = nil
  }
}

/// A fragment of a file: what its heads say, and where it lies.
package struct WalkedFragment: Sendable {
  /// Without payloads. It starts a segment where a `prft` stands before it, as weir writes them.
  package var fragment: Fragment
  /// Bytes of the file: where its first box begins, and where its last ends.
  package var offset: UInt64
  package var end: UInt64
  /// Where the media of each of the runs begins.
  package var mediaOffsets: [UInt64]
  /// What its `prft` says.
  package var clock: WallClockAnchor?
}

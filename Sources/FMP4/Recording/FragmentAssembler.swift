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
    leader = (tracks.first { $0.kind == .video } ?? tracks.first)?.id
    timescales = Dictionary(tracks.map { ($0.id, $0.timescale) }, uniquingKeysWith: { first, _ in first })
  }

  /// The same, with what the `moov` says that fragments may leave out.
  mutating func change(to tracks: [TrackDescription], movie: ByteBuffer) {
    change(to: tracks)
    defaults = MovieReader.fragmentDefaults(movie, tracks: tracks)
  }

  /// A `prft`, which belongs to the fragment that follows.
  mutating func reference(_ payload: ByteBuffer, at offset: UInt64) {
    reference = ProducerReferenceTime(payload).map { ($0, offset) }
  }

  enum Head: Sendable {
    case read
    case unreadable
  }

  /// A `moof`.
  mutating func head(_ payload: ByteBuffer, at offset: UInt64) -> Head {
    guard let leader, var sequence = payload.firstBox("mfhd"), sequence.skip(4),
      let number = sequence.readInteger(as: UInt32.self),
      let located = FragmentReader.read(payload, timescales: timescales, defaults: defaults, moofOffset: offset)
    else { return .unreadable }
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
    return .read
  }

  enum Media: Sendable {
    /// The fragment is whole.
    case fragment(WalkedFragment)
    /// It belongs to no fragment.
    case stray
    /// Its fragment's samples do not lie within.
    case unfit
  }

  /// An `mdat` that is whole, of which these bytes are the payload.
  mutating func media(_ body: Range<UInt64>) -> Media {
    guard let (fragment, offset, mediaOffsets) = pending else { return .stray }
    pending = nil
    for (run, offset) in zip(fragment.runs, mediaOffsets) {
      guard offset >= body.lowerBound, offset &+ UInt64(run.byteCount) <= body.upperBound else { return .unfit }
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
    return .fragment(
      WalkedFragment(
        fragment: fragment, offset: from, end: body.upperBound, mediaOffsets: mediaOffsets, clock: clock))
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

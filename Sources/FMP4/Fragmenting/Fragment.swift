package import NIOCore

/// A moof with its mdat. It holds the samples' bytes and all that its boxes say of them; `FragmentBoxes` writes the heads of every layout from it.
package struct Fragment: Sendable {
  /// `mfhd.sequence_number`; strictly rising within an epoch (ISO/IEC 14496-12 §8.8.5).
  package var sequenceNumber: UInt32
  /// The first fragment of its segment.
  package var startsSegment: Bool
  /// Decoding may start with its first sample of the leading track.
  package var isIndependent: Bool
  /// The track by which fragments are cut; it may have no run here.
  package var leader: TrackID
  /// No further fragment is expected in its segment: it is complete, or by all that is known it will be with the next
  /// sample.
  package var isExpectedLast = false
  /// Of a fragment that starts a segment: how long that segment will be if the sync samples keep their distance. Nil
  /// where they have none.
  package var expectedSegmentDuration: MediaTime?
  /// Of such a fragment: the other tracks' samples that begin before this presentation time are in that segment, later
  /// ones are not, if it becomes as long as expected.
  package var expectedFollowersEnd: MediaTime?
  /// One run a track that has samples here, the leading track's first, further tracks of a kind last.
  package var runs: [TrackRun]
  /// The samples' bytes, run by run, in order; together `mediaByteCount` bytes.
  package var payloads: [ByteBuffer]
  /// Earliest presentation time of the leading track (of a fragment that starts a segment: in that segment), and how long
  /// its samples last.
  package var start: MediaTime
  package var duration: MediaTime
  /// Presentation time of the leading track at which what follows begins.
  package var end: MediaTime

  /// It starts a segment, and with pictures that are shown before its key frame though they are decoded behind it.
  package var opensGroup: Bool {
    guard startsSegment, isIndependent, let run = run(of: leader), let first = run.samples.first else { return false }
    return start.rescaled(to: run.timescale) < run.baseDecodeTime &+ Int64(first.compositionOffset)
  }

  package var mediaByteCount: Int { runs.reduce(0) { $0 + $1.byteCount } }

  package func run(of track: TrackID) -> TrackRun? {
    runs.first { $0.track == track }
  }
}

/// The consecutive samples of one track in one fragment.
package struct TrackRun: Sendable {
  package var track: TrackID
  package var timescale: UInt32
  /// Decode time of the first sample, in ticks of the timescale (`tfdt`, ISO/IEC 14496-12 §8.8.12).
  package var baseDecodeTime: Int64
  package var samples: [RunSample]
  /// Sum of the samples' sizes.
  package var byteCount: Int
  /// Sum of the samples' durations, in ticks.
  package var duration: Int64

  package var endDecodeTime: Int64 { baseDecodeTime &+ duration }

  /// Earliest presentation time of any sample, in ticks.
  package var earliestPresentationTime: Int64 {
    var decodeTime = baseDecodeTime
    var earliest = Int64.max
    for sample in samples {
      earliest = min(earliest, decodeTime &+ Int64(sample.compositionOffset))
      decodeTime &+= Int64(sample.duration)
    }
    return earliest == .max ? baseDecodeTime : earliest
  }
}

extension TrackRun {
  /// Where the last sample in presentation order ends, in ticks.
  package var presentationEnd: Int64 {
    var decodeTime = baseDecodeTime
    var end = Int64.min
    for sample in samples {
      let next = decodeTime &+ Int64(sample.duration)
      end = max(end, next &+ Int64(sample.compositionOffset))
      decodeTime = next
    }
    return end == .min ? baseDecodeTime : end
  }
}

/// What a `trun` says of one sample (ISO/IEC 14496-12 §8.8.8).
package struct RunSample: Sendable, Hashable {
  /// Bytes.
  package var size: UInt32
  /// Ticks; never 0.
  package var duration: UInt32
  /// Presentation minus decode time, in ticks.
  package var compositionOffset: Int32
  package var isSync: Bool
  /// No other sample needs it to be decoded.
  package var isDisposable: Bool

  package init(size: UInt32, duration: UInt32, compositionOffset: Int32, isSync: Bool, isDisposable: Bool = false) {
    self.size = size
    self.duration = duration
    self.compositionOffset = compositionOffset
    self.isSync = isSync
    self.isDisposable = isDisposable
  }
}

/// What comes out of a `Segmenter`, in order.
package enum FragmentEvent: Sendable {
  /// A new init segment; fragments that follow belong to it. After the first, a `.discontinuity` precedes it.
  case initialization(InitSegment)
  case fragment(Fragment)
  /// The segment that the fragments since the last `startsSegment` make up is complete.
  case segmentEnd
  case clock(WallClockAnchor)
  /// The next segment does not continue the one before.
  case discontinuity
  /// Two sync samples of the leading track were this far apart; told whenever the longest so far grows.
  case groupOfPictures(MediaTime)
  case end(EndReason)
}

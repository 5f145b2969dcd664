public import NIOCore

/// A fragment: moof and mdat. Holds the samples' bytes and all values of its boxes. `FragmentBoxes` writes the headers
/// of every layout from it.
public struct Fragment: Sendable {
  /// `mfhd.sequence_number`; strictly rising from 1 on (ISO/IEC 14496-12 §8.8.5).
  public var sequenceNumber: UInt32
  /// The first fragment of its segment.
  public var startsSegment: Bool
  /// Decoding can start at its first sample of the leading track.
  public var isIndependent: Bool
  /// The track that sets the cuts. It may have no run in this fragment.
  public var leader: TrackID
  /// The segment is complete with this fragment, or is expected to be with the next sample.
  package var isExpectedLast = false
  /// Only in a fragment that starts a segment: expected duration of the segment, if the sync samples keep their
  /// distance. Nil if their distance is not steady.
  package var expectedSegmentDuration: MediaTime?
  /// Only in a fragment that starts a segment: presentation time at which the other tracks are expected to end in it.
  /// Their samples that begin earlier belong to this segment, if it gets the expected duration.
  package var expectedFollowersEnd: MediaTime?
  /// One run per track with samples here. The leading track comes first; additional tracks of a kind come last.
  public var runs: [TrackRun]
  /// The samples' bytes, run by run, in order. `mediaByteCount` bytes in total.
  public var payloads: [ByteBuffer]
  /// Earliest presentation time of the leading track. If the fragment starts a segment: the earliest in that segment.
  public var start: MediaTime
  /// Duration of the leading track's samples.
  public var duration: MediaTime
  /// Presentation time of the leading track at which the next fragment begins.
  public var end: MediaTime
  /// Only in the last fragments of a publication: presentation time at which they end with all tracks, if another track goes
  /// on for longer than the leading one.
  package var longestEnd: MediaTime?
  /// It has only samples of other tracks from before its segment, and adds no time to the segment.
  package var isAside = false
  /// Only aside: it came together with the fragment before it. In a layout that has both they are one part.
  package var joinsPart = false

  /// A fragment beside this one, with samples of one of the other tracks, or none yet.
  func beside(_ taken: (run: TrackRun, payloads: [ByteBuffer])?, sequenceNumber: UInt32) -> Fragment {
    var fragment = self
    fragment.sequenceNumber = sequenceNumber
    (fragment.runs, fragment.payloads) = (taken.map { [$0.run] } ?? [], taken?.payloads ?? [])
    (fragment.startsSegment, fragment.isIndependent, fragment.isAside) = (false, false, true)
    (fragment.expectedSegmentDuration, fragment.expectedFollowersEnd) = (nil, nil)
    fragment.duration = .zero
    return fragment
  }

  /// Whether it starts a segment with an open GOP: frames decoded after the key frame are shown before it.
  package var opensGroup: Bool {
    guard startsSegment, isIndependent, let run = run(of: leader), let first = run.samples.first else { return false }
    return start.rescaled(to: run.timescale) < run.baseDecodeTime &+ Int64(first.compositionOffset)
  }

  /// Whether the segment that it starts can be decoded without the one before: from its key frame on, or because nothing of the
  /// leading track is in it, and the other tracks begin with sync samples.
  package var beginsIndependently: Bool {
    isIndependent
      || startsSegment && isExpectedLast && run(of: leader) == nil
        && runs.allSatisfy { $0.samples.first?.isSync == true }
  }

  /// Bytes of all samples.
  public var mediaByteCount: Int { runs.reduce(0) { $0 + $1.byteCount } }

  /// The samples of a track. Nil if it has none here.
  public func run(of track: TrackID) -> TrackRun? {
    runs.first { $0.track == track }
  }
}

/// The consecutive samples of one track in one fragment.
public struct TrackRun: Sendable {
  /// The track.
  public var track: TrackID
  /// Ticks per second of the times here.
  public var timescale: UInt32
  /// Decode time of the first sample, in ticks of the timescale (`tfdt`, ISO/IEC 14496-12 §8.8.12).
  public var baseDecodeTime: Int64
  /// The samples' fields, in decode order. Their bytes are in the fragment's `payloads`.
  public var samples: [RunSample]
  /// Sum of the samples' sizes.
  public var byteCount: Int
  /// Sum of the samples' durations, in ticks.
  public var duration: Int64

  /// Decode time at which the last sample ends, in ticks.
  public var endDecodeTime: Int64 { baseDecodeTime &+ duration }

  /// Earliest presentation time of any sample, in ticks.
  public var earliestPresentationTime: Int64 {
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
  /// End of the last sample in presentation order, in ticks.
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

/// The `trun` fields of one sample (ISO/IEC 14496-12 §8.8.8).
public struct RunSample: Sendable, Hashable {
  /// Bytes.
  public var size: UInt32
  /// Ticks; never 0.
  public var duration: UInt32
  /// Presentation minus decode time, in ticks.
  public var compositionOffset: Int32
  /// Decoding can start here.
  public var isSync: Bool
  /// No other sample depends on it for decoding.
  public var isDisposable: Bool

  package init(size: UInt32, duration: UInt32, compositionOffset: Int32, isSync: Bool, isDisposable: Bool = false) {
    self.size = size
    self.duration = duration
    self.compositionOffset = compositionOffset
    self.isSync = isSync
    self.isDisposable = isDisposable
  }
}

/// Output of a `Segmenter`, in order.
public enum FragmentEvent: Sendable {
  /// A new init segment for the fragments that follow. It begins a segment. Every one but the first comes after a
  /// `.discontinuity`, or continues the one before.
  case initialization(InitSegment)
  /// The next fragment.
  case fragment(Fragment)
  /// The segment is complete: the fragments since the last `startsSegment`.
  case segmentEnd
  /// Wall clock time of a media time, as it was received.
  case clock(WallClockAnchor)
  /// The next segment does not continue the one before.
  case discontinuity
  /// Distance of two sync samples of the leading track. Sent each time a longer one is found.
  case groupOfPictures(MediaTime)
  /// The publication is over: no event follows.
  case end(EndReason)
}

internal import NIOCore

/// Presentation times at which a segment ends: on the leading track, and on the others.
struct PredictedSegment {
  var end: MediaTime
  var followersEnd: MediaTime
}

/// A fragment with complete leading samples. Those of the other tracks join when it is released.
struct ClosingFragment {
  var run: TrackRun?
  var payloads: [ByteBuffer]
  var isIndependent: Bool
  var endsSegment: Bool
  var isExpectedLast: Bool
  var expectedSegmentDuration: MediaTime?
  var predicted: PredictedSegment?
  /// The fragment has already waited for samples of the other tracks.
  var hasWaited = false
  /// It only ends the segment, whose media is complete. Nothing is added to it.
  var isEmpty = false
  /// The next segment may begin earlier than `boundary`: frames shown before its key frame may still come.
  var awaitsGroup = false
  /// The deferred tracks begin after it.
  var bringsTracks = false
  /// Presentation time at which the fragment ends.
  var boundary: MediaTime
  /// Decode time at which it ends on the leading track.
  var decodeEnd: MediaTime
  var duration: MediaTime
  var start: MediaTime

  /// The same after the leading track's samples, for what the other tracks have beyond them.
  var rest: ClosingFragment {
    var rest = self
    (rest.run, rest.payloads, rest.duration, rest.start) = (nil, [], .zero, boundary)
    (rest.isIndependent, rest.expectedSegmentDuration, rest.predicted) = (false, nil, nil)
    return rest
  }

  /// Bytes of the leading track's samples.
  var byteCount: Int { run?.byteCount ?? 0 }
}

package import FMP4

/// Bit rates of a rendition, in bits per second, measured over the complete segments of an epoch. They include the heads of
/// fragments.
package struct Bandwidth: Sendable, Hashable {
  /// The highest rate of a segment.
  package private(set) var peak = 0
  /// Sums over all segments, for the average.
  private var bytes = 0
  private var nanoseconds: Int64 = 0
  /// The highest rate of the I-frame playlist: bytes of a segment's key frame over the length of the segment.
  package private(set) var keyFramePeak = 0
  /// The same as `peak`, for segments that have one track alone.
  package private(set) var peakOfTrack: [TrackID: Int] = [:]
  /// Sums for each track, over the segments that have it.
  private var sums: [TrackID: Sum] = [:]

  package init() {}

  private struct Sum: Sendable, Hashable {
    var bytes = 0
    var nanoseconds: Int64 = 0
  }

  /// The mean rate over all segments. 0 before the first.
  package var average: Int {
    nanoseconds > 0 ? Int(Double(bytes) * 8e9 / Double(nanoseconds)) : peak
  }

  /// `keyFrameLength` is the length of the segment's key frame in the I-frame playlist, in bytes.
  package mutating func add(_ segment: LiveSegment, keyFrameLength: Int?, fragmentCount: Int) {
    let length = segment.duration.nanoseconds
    // The last segment before a break may be a single frame. Its rate would be far too high.
    guard length > 100_000_000 else { return }
    let segmentBytes = segment.byteCount(of: nil)
    bytes &+= segmentBytes
    let (sum, overflow) = nanoseconds.addingReportingOverflow(length)
    nanoseconds = overflow ? .max : sum
    peak = max(peak, Self.rate(segmentBytes, length))
    keyFramePeak = max(keyFramePeak, Self.rate(keyFrameLength ?? 0, length))
    for span in segment.spans {
      // An estimate in bytes, on the high side: the segment's `styp`, and a `moof` with the `mdat` header for each fragment.
      let overhead = 24 + fragmentCount * 300
      peakOfTrack[span.track] = max(peakOfTrack[span.track] ?? 0, Self.rate(span.mediaBytes + overhead, length))
      sums[span.track, default: Sum()].bytes &+= span.mediaBytes &+ overhead
      sums[span.track, default: Sum()].nanoseconds &+= length
    }
  }

  /// The mean rate of a track; its peak before the first segment.
  package func average(of track: TrackID) -> Int {
    guard let sum = sums[track], sum.nanoseconds > 0 else { return peakOfTrack[track] ?? 0 }
    return Int(Double(sum.bytes) * 8e9 / Double(sum.nanoseconds))
  }

  /// An upper bound of the track's peak, in bits per second: at least 1, and at most an eighth too high. It is rounded so that it
  /// seldom changes: manifests contain it, and after each change clients load a whole manifest.
  package func steadyPeak(of track: TrackID) -> Int {
    let peak = max(peakOfTrack[track] ?? 0, 1)
    let step = max(1, 1 << max(0, Int.bitWidth - 1 - peak.leadingZeroBitCount - 3))
    return (peak &+ step &- 1) / step * step
  }

  private static func rate(_ bytes: Int, _ nanoseconds: Int64) -> Int {
    Int(clamping: Int64((Double(bytes) * 8e9 / Double(nanoseconds)).rounded(.up)))
  }
}

internal import FMP4
internal import Storage

/// How many bits a second a stream needs, measured over its complete segments.
struct Bandwidth: Sendable, Hashable {
  /// Of the segment that needed most.
  private(set) var peak = 0
  private var bytes = 0
  private var nanoseconds: Int64 = 0
  /// Of the I-frame playlist: of the largest key frame over the length of its segment.
  private(set) var keyFramePeak = 0
  private(set) var peakOfTrack: [TrackID: Int] = [:]

  /// Over all segments of the epoch.
  var average: Int {
    nanoseconds > 0 ? Int(Double(bytes) * 8e9 / Double(nanoseconds)) : peak
  }

  /// `keyFrameLength` is what an I-frame playlist takes of the segment, in bytes.
  mutating func add(_ segment: LiveSegment, keyFrameLength: Int?, fragmentCount: Int) {
    let length = segment.duration.nanoseconds
    // The last segment before a break may be a single frame, whose rate says nothing.
    guard length > 100_000_000 else { return }
    let segmentBytes = segment.byteCount(of: nil)
    bytes &+= segmentBytes
    let (sum, overflow) = nanoseconds.addingReportingOverflow(length)
    nanoseconds = overflow ? .max : sum
    peak = max(peak, Self.rate(segmentBytes, length))
    keyFramePeak = max(keyFramePeak, Self.rate(keyFrameLength ?? 0, length))
    for span in segment.spans {
      // Heads of fragments and segments come on top of the media.
      let overhead = 24 + fragmentCount * 300
      peakOfTrack[span.track] = max(peakOfTrack[span.track] ?? 0, Self.rate(span.mediaBytes + overhead, length))
    }
  }

  /// Bits a second that no segment of the track has needed yet, at least 1 and at most an eighth too much: manifests say
  /// it, and each change of it costs their readers a whole one.
  func steadyPeak(of track: TrackID) -> Int {
    let peak = max(peakOfTrack[track] ?? 0, 1)
    let step = max(1, 1 << max(0, Int.bitWidth - 1 - peak.leadingZeroBitCount - 3))
    return (peak &+ step &- 1) / step * step
  }

  private static func rate(_ bytes: Int, _ nanoseconds: Int64) -> Int {
    Int(clamping: Int64((Double(bytes) * 8e9 / Double(nanoseconds)).rounded(.up)))
  }
}

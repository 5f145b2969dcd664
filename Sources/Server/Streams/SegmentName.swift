internal import Base
package import NIOCore

/// The file name of a segment in its rendition. Segments of one track are named by time, as DASH requires, in HLS too, so that
/// a cache holds them once. Interleaved segments, which DASH does not use, are named by media sequence number.
package enum SegmentName: Sendable, Hashable {
  /// By media sequence number.
  case number(Int)
  /// By the earliest presentation time of the rendition's track, in ticks of the timescale in that version of the init segment.
  case time(Int64, initVersion: Int)

  package var text: String {
    switch self {
    case .number(let number): MediaName.segment(number)
    case .time(let time, let version): MediaName.segment(at: time, initVersion: version)
    }
  }

  package func write(_ out: inout ByteBuffer) {
    switch self {
    case .number(let number): out.writeDecimal(UInt64(clamping: number))
    case .time(let time, let version):
      out.writeString(MediaName.timePrefix(initVersion: version))
      out.writeDecimal(UInt64(clamping: time))
    }
    out.writeStaticString(MediaName.segmentEnding)
  }
}

extension LiveWindow {
  /// The name of a segment in a rendition. A segment without media of the rendition is named by its number: playlists mark it as
  /// a gap, so no client requests it.
  package func name(of segment: LiveSegment, in rendition: Rendition) -> SegmentName {
    guard let track = layout(rendition, of: segment)?.trackID, let span = segment.span(of: track) else {
      return .number(segment.sequenceNumber)
    }
    return .time(span.listed.start, initVersion: initVersion(rendition, of: segment))
  }

  /// The name of the segment with this number, also before it exists. Then it is a guess: that it begins where the listing of the
  /// previous segment ends, without a break and with the same init segment.
  package func expectedName(ofSegment number: Int, in rendition: Rendition) -> SegmentName {
    if let segment = segment(number), let track = layout(rendition, of: segment)?.trackID,
      segment.span(of: track) != nil
    {
      return name(of: segment, in: rendition)
    }
    guard let before = segment(number - 1), let track = layout(rendition, of: before)?.trackID,
      let listed = before.span(of: track)?.listed
    else { return .number(number) }
    return .time(listed.start &+ listed.duration, initVersion: initVersion(rendition, of: before))
  }
}

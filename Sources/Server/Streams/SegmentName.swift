internal import Basics
internal import NIOCore

/// The name of a segment in its rendition's folder. One track alone is named as DASH asks for it, in HLS too, so that a
/// cache holds it once; the interleaved layout, which DASH does not know, by media sequence number.
enum SegmentName: Sendable, Hashable {
  /// By media sequence number.
  case number(Int)
  /// By the earliest presentation time of the rendition's track, in its ticks, which the init segment's version tells.
  case time(Int64, initVersion: Int)

  var text: String {
    switch self {
    case .number(let number): MediaName.segment(number)
    case .time(let time, let version): MediaName.segment(at: time, initVersion: version)
    }
  }

  func write(_ out: inout ByteBuffer) {
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
  /// What a segment is called in a rendition. Where it has nothing of it, nobody fetches it.
  func name(of segment: LiveSegment, in rendition: Rendition) -> SegmentName {
    guard let track = layout(rendition, of: segment)?.trackID, let span = segment.span(of: track) else {
      return .number(segment.sequenceNumber)
    }
    return .time(span.listed.start, initVersion: segment.initVersion)
  }

  /// What the segment of that number will be called, if the one before it comes to what is known of it and nothing breaks
  /// between them.
  func expectedName(ofSegment number: Int, in rendition: Rendition) -> SegmentName {
    if let segment = segment(number), let track = layout(rendition, of: segment)?.trackID,
      segment.span(of: track) != nil
    {
      return name(of: segment, in: rendition)
    }
    guard let before = segment(number - 1), let track = layout(rendition, of: before)?.trackID,
      let listed = before.span(of: track)?.listed
    else { return .number(number) }
    return .time(listed.start &+ listed.duration, initVersion: before.initVersion)
  }
}

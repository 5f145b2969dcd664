internal import Basics
internal import FMP4
internal import NIOCore

/// The lines of a segment in a media playlist, live or recorded, and the tags before it that say how it is to be taken;
/// each of those only where something changes.
struct HLSSegmentLines: Sendable {
  private var initVersion: Int?

  /// `initVersion` is nil where the rendition has nothing; `wallStart`, in nanoseconds since 1970, where what was said
  /// before still tells the time.
  mutating func writeHead(
    followsDiscontinuity: Bool, initVersion: Int?, wallStart: Int64?, _ out: inout ByteBuffer
  ) {
    if followsDiscontinuity { out.writeStaticString("#EXT-X-DISCONTINUITY\n") }
    if let initVersion, initVersion != self.initVersion {
      out.writeString("#EXT-X-MAP:URI=\"\(MediaName.initSegment(initVersion))\"\n")
      self.initVersion = initVersion
    }
    if let wallStart {
      out.writeString("#EXT-X-PROGRAM-DATE-TIME:\(UTCText(nanosecondsSince1970: wallStart).internet)\n")
    }
  }

  /// The next head says everything again, so that a playlist can begin with it.
  mutating func startOver() { initVersion = nil }

  static func write(_ name: SegmentName, duration: MediaTime, isGap: Bool, _ out: inout ByteBuffer) {
    if isGap { out.writeStaticString("#EXT-X-GAP\n") }
    out.writeStaticString("#EXTINF:")
    out.writeSeconds(duration)
    out.writeStaticString(",\n")
    name.write(&out)
    out.writeStaticString("\n")
  }
}

extension ByteBuffer {
  /// Seconds with six decimals, as `Decimals.fixed` writes them.
  mutating func writeSeconds(_ time: MediaTime) {
    let microseconds = time.rescaled(to: 1_000_000)
    if microseconds < 0 { writeStaticString("-") }
    writeDecimal(microseconds.magnitude / 1_000_000)
    writeStaticString(".")
    writeDecimal(microseconds.magnitude % 1_000_000, minimumDigits: 6)
  }
}

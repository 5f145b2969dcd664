internal import Basics
internal import FMP4
internal import Ingest
internal import NIOCore

/// The lines of a segment in a media playlist, live or recorded, with the tags before it. Tags are written only when a value
/// changes.
struct HLSSegmentLines: Sendable {
  private var initVersion: Int?

  /// `initVersion` is nil when the rendition has no media there. `wallStart` is nil when the last
  /// EXT-X-PROGRAM-DATE-TIME still holds.
  mutating func writeHead(
    followsDiscontinuity: Bool, initVersion: Int?, wallStart: WallTime?, _ out: inout ByteBuffer
  ) {
    if followsDiscontinuity { out.writeStaticString("#EXT-X-DISCONTINUITY\n") }
    if let initVersion, initVersion != self.initVersion {
      out.writeString("#EXT-X-MAP:URI=\"\(MediaName.initSegment(initVersion))\"\n")
      self.initVersion = initVersion
    }
    if let wallStart {
      out.writeString("#EXT-X-PROGRAM-DATE-TIME:\(UTCText(wallStart).internet)\n")
    }
  }

  /// The next head writes all tags again, so that a playlist can begin there.
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
  /// Writes seconds with six decimals, like `Decimals.fixed`.
  mutating func writeSeconds(_ time: MediaTime) {
    let microseconds = time.rescaled(to: 1_000_000)
    if microseconds < 0 { writeStaticString("-") }
    writeDecimal(microseconds.magnitude / 1_000_000)
    writeStaticString(".")
    writeDecimal(microseconds.magnitude % 1_000_000, minimumDigits: 6)
  }
}

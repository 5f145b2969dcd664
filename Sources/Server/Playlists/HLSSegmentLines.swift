internal import Base
package import FMP4
package import NIOCore
package import Streams

/// Writes the lines of one segment after the other in a media playlist, live or recorded: first `writeHead` with the tags, then
/// `write` with length and name. EXT-X-MAP is written only when the init segment changes.
package struct HLSSegmentLines: Sendable {
  /// The version in the last EXT-X-MAP.
  private var initVersion: Int?

  package init() {}

  /// - Parameters:
  ///   - initVersion: of the segment's init segment; nil when the rendition has no media in the segment.
  ///   - wallStart: nil when the last EXT-X-PROGRAM-DATE-TIME and the lengths since tell it.
  package mutating func writeHead(
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

  /// Makes the next head write EXT-X-MAP in any case, so that a playlist can begin there.
  package mutating func startOver() { initVersion = nil }

  package static func write(_ name: SegmentName, duration: MediaTime, isGap: Bool, _ out: inout ByteBuffer) {
    if isGap { out.writeStaticString("#EXT-X-GAP\n") }
    out.writeStaticString("#EXTINF:")
    out.writeSeconds(duration)
    out.writeStaticString(",\n")
    name.write(&out)
    out.writeStaticString("\n")
  }
}

extension ByteBuffer {
  /// Writes seconds with six decimals: `6.006000`.
  mutating func writeSeconds(_ time: MediaTime) {
    let microseconds = time.rescaled(to: 1_000_000)
    if microseconds < 0 { writeStaticString("-") }
    writeDecimal(microseconds.magnitude / 1_000_000)
    writeStaticString(".")
    writeDecimal(microseconds.magnitude % 1_000_000, minimumDigits: 6)
  }
}

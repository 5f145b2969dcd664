internal import Base
internal import FMP4
package import NIOCore
package import Streams

/// The I-frame playlist: key frames of the video as byte ranges of its segments (RFC 8216bis §4.4.3.6), for trick play and
/// previews while seeking. Rendered from a window.
package struct HLSIFramePlaylist {
  package let window: LiveWindow
  var rendition = Rendition.video

  package init(window: LiveWindow, rendition: Rendition = .video) {
    (self.window, self.rendition) = (window, rendition)
  }

  /// URIs are relative to the playlist: `…/{epoch}/video/iframes.m3u8`.
  package func render() -> ByteBuffer {
    let listed = window.listed
    var out = ByteBuffer()
    let keyFrames = listed.map { segment in
      window.layout(rendition, of: segment)?.trackID.flatMap { segment.keyFrameLength(of: $0) }
    }
    out.writeString(
      "#EXTM3U\n#EXT-X-VERSION:\(keyFrames.contains(nil) ? 8 : 5)\n#EXT-X-TARGETDURATION:\(window.targetDuration ?? 1)\n"
        + "#EXT-X-MEDIA-SEQUENCE:\(window.firstListedNumber)\n")
    let breaks = window.discontinuitySequence(of: rendition)
    if breaks > 0 { out.writeString("#EXT-X-DISCONTINUITY-SEQUENCE:\(breaks)\n") }
    out.writeStaticString("#EXT-X-I-FRAMES-ONLY\n")
    var initVersion: Int?
    for (segment, length) in zip(listed, keyFrames) {
      if segment.followsDiscontinuity { out.writeStaticString("#EXT-X-DISCONTINUITY\n") }
      let version = window.initVersion(rendition, of: segment)
      if length != nil, version != initVersion {
        out.writeString("#EXT-X-MAP:URI=\"\(MediaName.initSegment(version))\"\n")
        initVersion = version
      }
      out.writeString("#EXT-X-PROGRAM-DATE-TIME:\(UTCText(segment.wallStart).internet)\n")
      // A frame lasts until the next one. A segment without a key frame becomes a gap of its length.
      if length == nil { out.writeStaticString("#EXT-X-GAP\n") }
      out.writeString("#EXTINF:\(Decimals.fixed(segment.duration, digits: 6)),\n")
      if let length { out.writeString("#EXT-X-BYTERANGE:\(length)@0\n") }
      out.writeString("\(window.name(of: segment, in: rendition).text)\n")
    }
    if window.isEnded { out.writeStaticString("#EXT-X-ENDLIST\n") }
    return out
  }
}

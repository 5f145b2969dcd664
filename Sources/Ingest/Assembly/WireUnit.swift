internal import FMP4
internal import NIOCore

/// A coded video or audio frame from a container.
struct WireUnit {
  /// Its track. A track keeps its kind as long as the publication lasts.
  var track: TrackID
  var coding: CodecID
  /// Decode time in nanoseconds of the publisher's clock (`WireClock`).
  var time: Int64
  /// Composition offset in nanoseconds, for video.
  var composition: Int64 = 0
  /// The publisher did not state its time: it is counted on from the unit before.
  var isCountedOn = false
  /// As in the codec's samples: NAL units with their lengths, open bitstream units, or one audio frame.
  var payload: ByteBuffer
}

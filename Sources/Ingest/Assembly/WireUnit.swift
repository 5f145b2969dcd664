internal import FMP4
internal import NIOCore

/// A coded picture or frame of audio, as a container gives it.
struct WireUnit {
  /// Which of the publication's tracks it belongs to. A track is of one kind as long as the publication lasts.
  var track: TrackID
  var coding: CodecID
  /// When it is decoded, in nanoseconds by the publisher's clock (`WireClock`).
  var time: Int64
  /// Presentation minus decode time, in nanoseconds; of a picture.
  var composition: Int64 = 0
  /// As the codec's samples are stored: NAL units with their lengths, open bitstream units, one frame of audio.
  var payload: ByteBuffer
}

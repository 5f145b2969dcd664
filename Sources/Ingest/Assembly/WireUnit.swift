internal import FMP4
internal import NIOCore

/// A coded picture or frame of sound, as a container gives it.
struct WireUnit {
  /// Which of the publication's tracks it belongs to.
  var track: TrackID
  var coding: CodecID
  /// When it is decoded, in milliseconds of the publisher's clock, from which nothing is wrapped off.
  var time: Int64
  /// Presentation minus decode time in milliseconds, and what is added to it in nanoseconds. Sound has neither.
  var composition: Int32 = 0
  var nanoseconds: UInt32 = 0
  /// As the codec's samples are stored: NAL units with their lengths, open bitstream units, one frame of sound.
  var payload: ByteBuffer
}

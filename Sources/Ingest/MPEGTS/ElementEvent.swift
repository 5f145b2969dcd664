internal import FMP4
internal import NIOCore

/// What an elementary stream yields.
enum ElementEvent {
  /// The decoder configuration record of the units that follow.
  case configuration(CodecID, ByteBuffer)
  case unit(ElementUnit)
  /// A video or audio frame is damaged or unreadable.
  case lost(MediaKind)
  /// A video frame came before its configuration.
  case early
  /// A form of its codec that weir does not take. The reason is printable.
  case unusable(CodecID, String)
}

/// One access unit or audio frame of an elementary stream. `isCountedOn` and `payload` are as `WireUnit` has them.
struct ElementUnit {
  var coding: CodecID
  /// Ticks of the programme's 90 kHz, without wraps.
  var presentation: Int64
  var decode: Int64
  var isCountedOn = false
  var payload: ByteBuffer
}

internal import NIOCore

/// A whole frame of video, put together from its packets.
struct RTPFrame {
  var timestamp: UInt32
  /// NAL units with their lengths in four bytes, without parameter sets; or open bitstream units with their sizes;
  /// or a frame of VP9.
  var payload: ByteBuffer
  /// Of H.264 and HEVC.
  var parameterSets: [[UInt8]] = []
  /// Decoding can begin here.
  var isKey: Bool
}

/// What comes out of packets of video in order.
enum RTPFrameEvent {
  case frame(RTPFrame)
  /// A frame of which something is missing, or that cannot be read.
  case lost
}

/// Puts frames together. The packets come in order; `afterGap` says that some are missing in front of this one.
protocol RTPFrameAssembler {
  mutating func receive(_ packet: RTPPacket, afterGap: Bool, to out: inout [RTPFrameEvent])
  /// Bytes of the unfinished frame.
  var heldBytes: Int { get }
  /// Whether the first payload of a sender is of a key frame whose beginning is missing.
  func lacksBeginning(_ payload: ByteBuffer) -> Bool
}

extension RTPFrameAssembler {
  func lacksBeginning(_ payload: ByteBuffer) -> Bool { false }
}

/// Why a stream or a connection ends (RFC 9113 §7).
enum HTTP2Code: UInt32 {
  case noError = 0
  case protocolError = 1
  case internalError = 2
  case flowControlError = 3
  case streamClosed = 5
  case frameSizeError = 6
  case refusedStream = 7
  case cancel = 8
  case compressionError = 9
  case enhanceYourCalm = 11
}

/// Types and flags of frames (RFC 9113 §6).
enum HTTP2FrameType {
  static let data: UInt8 = 0
  static let headers: UInt8 = 1
  static let priority: UInt8 = 2
  static let reset: UInt8 = 3
  static let settings: UInt8 = 4
  static let pushPromise: UInt8 = 5
  static let ping: UInt8 = 6
  static let goAway: UInt8 = 7
  static let windowUpdate: UInt8 = 8
  static let continuation: UInt8 = 9

  static let endsStream: UInt8 = 1
  static let acknowledges: UInt8 = 1
  static let endsHeaders: UInt8 = 4
  static let isPadded: UInt8 = 8
  static let hasPriority: UInt8 = 0x20
}

/// The first nine bytes of a frame (RFC 9113 §4.1).
struct HTTP2FrameHead {
  static let size = 9
  /// The longest payload, in both directions: the initial value of SETTINGS_MAX_FRAME_SIZE.
  static let longestPayload = 16_384

  var length: Int
  let type: UInt8
  let flags: UInt8
  let stream: UInt32
}

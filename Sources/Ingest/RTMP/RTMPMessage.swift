internal import NIOCore

/// Message types (RTMP 5.4, 6.2, 7.1). Other numbers are ignored.
enum RTMPMessageType {
  static let setChunkSize: UInt8 = 1
  static let abort: UInt8 = 2
  static let acknowledgement: UInt8 = 3
  static let userControl: UInt8 = 4
  static let windowAcknowledgementSize: UInt8 = 5
  static let setPeerBandwidth: UInt8 = 6
  static let audio: UInt8 = 8
  static let video: UInt8 = 9
  static let dataAMF3: UInt8 = 15
  static let sharedObjectAMF3: UInt8 = 16
  static let commandAMF3: UInt8 = 17
  static let dataAMF0: UInt8 = 18
  static let sharedObjectAMF0: UInt8 = 19
  static let commandAMF0: UInt8 = 20
  static let aggregate: UInt8 = 22

  /// Whether a message of this type may be as large as media.
  static func isMedia(_ type: UInt8) -> Bool {
    type == audio || type == video || type == aggregate
  }
}

/// One whole message, assembled from its chunks.
struct RTMPMessage: Equatable {
  /// One of `RTMPMessageType`, or an unknown number.
  var type: UInt8
  /// Milliseconds, modulo 2³².
  var timestamp: UInt32
  /// The message stream, 0 for the connection itself.
  var streamID: UInt32
  /// The body in its own buffer, never a slice of the read buffer.
  var payload: ByteBuffer
}

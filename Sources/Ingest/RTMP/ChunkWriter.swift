internal import NIOCore

/// Cuts the server's responses into chunks (RTMP 5.3.1): a type 0 header, then type 3. Responses are few and small, so
/// headers are not compressed.
struct ChunkWriter {
  /// Payload bytes per chunk. Set Chunk Size announces a change to the peer first.
  private(set) var chunkSize = 128

  /// Chunk streams by use, numbered as by other servers.
  static let controlStream: UInt8 = 2
  static let commandStream: UInt8 = 3
  static let statusStream: UInt8 = 5

  func write(
    type: UInt8, chunkStream: UInt8, messageStream: UInt32 = 0, payload: ByteBuffer, to out: inout ByteBuffer
  ) {
    out.writeInteger(chunkStream & 0x3F)
    out.writeU24(0)
    out.writeU24(UInt32(truncatingIfNeeded: payload.readableBytes))
    out.writeInteger(type)
    out.writeInteger(messageStream, endianness: .little)
    var rest = payload
    while let piece = rest.readSlice(length: min(chunkSize, rest.readableBytes)) {
      out.writeImmutableBuffer(piece)
      if rest.readableBytes == 0 { break }
      out.writeInteger(0xC0 | chunkStream & 0x3F)
    }
  }

  /// Set Chunk Size (RTMP 5.4.1). Applies to the messages after it.
  mutating func writeSetChunkSize(_ size: Int, to out: inout ByteBuffer) {
    control(RTMPMessageType.setChunkSize, UInt32(truncatingIfNeeded: size), to: &out)
    chunkSize = size
  }

  /// Acknowledgement (RTMP 5.4.3): bytes received so far, modulo 2³².
  func writeAcknowledgement(_ received: UInt32, to out: inout ByteBuffer) {
    control(RTMPMessageType.acknowledgement, received, to: &out)
  }

  /// Window Acknowledgement Size (RTMP 5.4.4), in bytes.
  func writeWindowAcknowledgementSize(_ size: UInt32, to out: inout ByteBuffer) {
    control(RTMPMessageType.windowAcknowledgementSize, size, to: &out)
  }

  /// Set Peer Bandwidth (RTMP 5.4.5), in bytes, with limit type "dynamic".
  func writeSetPeerBandwidth(_ size: UInt32, to out: inout ByteBuffer) {
    var payload = ByteBuffer()
    payload.writeInteger(size)
    payload.writeInteger(UInt8(2))
    write(type: RTMPMessageType.setPeerBandwidth, chunkStream: Self.controlStream, payload: payload, to: &out)
  }

  /// A user control event (RTMP 7.1.7) with one value.
  func writeUserControl(_ event: UserControlEvent, _ value: UInt32, to out: inout ByteBuffer) {
    var payload = ByteBuffer()
    payload.writeInteger(event.rawValue)
    payload.writeInteger(value)
    write(type: RTMPMessageType.userControl, chunkStream: Self.controlStream, payload: payload, to: &out)
  }

  /// A command (RTMP 7.1.1): its name and arguments in AMF0.
  func writeCommand(
    _ arguments: [AMFValue], chunkStream: UInt8 = commandStream, messageStream: UInt32 = 0, to out: inout ByteBuffer
  ) {
    var payload = ByteBuffer()
    for argument in arguments { AMF0.write(argument, to: &payload) }
    write(
      type: RTMPMessageType.commandAMF0, chunkStream: chunkStream, messageStream: messageStream, payload: payload,
      to: &out)
  }

  private func control(_ type: UInt8, _ value: UInt32, to out: inout ByteBuffer) {
    var payload = ByteBuffer()
    payload.writeInteger(value)
    write(type: type, chunkStream: Self.controlStream, payload: payload, to: &out)
  }
}

/// Events of User Control messages (RTMP 7.1.7) that a server uses.
enum UserControlEvent: UInt16 {
  case streamBegin = 0
  case streamEnd = 1
  case setBufferLength = 3
  case pingRequest = 6
  case pingResponse = 7
}

internal import FMP4
internal import LibAV
internal import NIOCore

/// Worker configuration for video: coding of the source, and the rungs.
struct TranscodeConfiguration: Sendable, Hashable {
  struct Rung: Sendable, Hashable {
    var width: UInt16
    var height: UInt16
    /// Bits per second.
    var bitRate: UInt32
    var preset = VideoEncoding.Preset.veryfast
  }

  /// A video codec.
  var codec: CodecID
  /// The decoder configuration record.
  var record: [UInt8]
  /// Timescale of the frame times, in ticks per second.
  var timescale: UInt32
  /// Ticks of a frame. 0 if the rate is unknown.
  var frameDuration: UInt32
  /// Code points of ITU-T H.273: primaries, transfer, matrix.
  var color: [UInt8]
  var rungs: [Rung]
}

/// Messages from the server to the worker.
enum TranscodeRequest: Sendable, Hashable {
  /// Ends the work before; its last frames are output first.
  case configure(TranscodeConfiguration)
  /// The same for audio. Its frames follow as `frame` messages that are all sync samples.
  case configureAudio(AudioTranscodeConfiguration)
  case frame(SourceFrame)
  /// A break of the timeline: output everything that is inside.
  case drain
  /// Make a JPEG.
  case still(StillImageRequest)

  /// A coded frame of the source, or an audio frame.
  struct SourceFrame: Sendable, Hashable {
    /// Ticks.
    var presentationTime: Int64
    var decodeTime: Int64
    var isSync: Bool
    /// How long frames wait at present, in milliseconds.
    var lateness: UInt16
    var payload: ByteBuffer
  }
}

/// Messages from the worker to the server.
enum TranscodeReply: Sendable, Hashable {
  /// The `avcC` record for the frames of a rung that follow. For audio: AudioSpecificConfig or OpusHead.
  case track(rung: UInt8, record: ByteBuffer)
  case frame(RungFrame)
  /// Frames consumed since the last such message, and frames dropped before the encoders.
  case consumed(frames: UInt32, dropped: UInt32)
  /// Everything was output.
  case drained
  case failed(String)
  /// The requested JPEG.
  case still(ByteBuffer)

  struct RungFrame: Sendable, Hashable {
    var rung: UInt8
    /// Ticks of the source; for audio, output samples.
    var presentationTime: Int64
    var isSync: Bool
    /// NAL units with four-byte lengths, or an audio frame.
    var payload: ByteBuffer
  }
}

/// The other side broke the protocol.
struct TranscodeProtocolError: Error, Sendable, Hashable, CustomStringConvertible {
  var description: String
}

/// Message format: four bytes with the length of type and body, one byte of type, the body. Numbers are big-endian.
enum TranscodeWire {
  private enum RequestType: UInt8 { case configure = 1, frame, drain, configureAudio, still }
  private enum ReplyType: UInt8 { case track = 65, frame, consumed, drained, failed, still }

  // MARK: Requests

  static func encode(_ request: TranscodeRequest) -> ByteBuffer {
    switch request {
    case .configure(let configuration):
      return message(RequestType.configure.rawValue) { out in
        out.writeInteger(configuration.codec.workerNumber)
        out.writeInteger(configuration.timescale)
        out.writeInteger(configuration.frameDuration)
        for index in 0..<3 {
          out.writeInteger(configuration.color.indices.contains(index) ? configuration.color[index] : 2)
        }
        out.writeInteger(UInt8(clamping: configuration.rungs.count))
        for rung in configuration.rungs {
          out.writeInteger(rung.width)
          out.writeInteger(rung.height)
          out.writeInteger(rung.bitRate)
          out.writeInteger(UInt8(clamping: VideoEncoding.Preset.allCases.firstIndex(of: rung.preset) ?? 0))
        }
        out.writeBytes(configuration.record)
      }
    case .frame(let frame):
      return message(RequestType.frame.rawValue, reserving: 19 + frame.payload.readableBytes) { out in
        out.writeInteger(frame.presentationTime)
        out.writeInteger(frame.decodeTime)
        out.writeInteger(UInt8(frame.isSync ? 1 : 0))
        out.writeInteger(frame.lateness)
        out.writeImmutableBuffer(frame.payload)
      }
    case .configureAudio(let configuration):
      return message(RequestType.configureAudio.rawValue) { configuration.write(to: &$0) }
    case .drain: return message(RequestType.drain.rawValue) { _ in }
    case .still(let still):
      let size = 11 + still.record.count + still.sample.readableBytes
      return message(RequestType.still.rawValue, reserving: size) { still.write(to: &$0) }
    }
  }

  static func request(_ type: UInt8, _ body: ByteBuffer) throws(TranscodeProtocolError) -> TranscodeRequest {
    var body = body
    switch RequestType(rawValue: type) {
    case .configure: return .configure(try configuration(&body))
    case .configureAudio: return .configureAudio(try AudioTranscodeConfiguration(reading: &body))
    case .frame:
      guard let presentation: Int64 = body.readInteger(), let decode: Int64 = body.readInteger(),
        let sync: UInt8 = body.readInteger(), let lateness: UInt16 = body.readInteger()
      else { throw truncated(type) }
      return .frame(
        TranscodeRequest.SourceFrame(
          presentationTime: presentation, decodeTime: decode, isSync: sync == 1, lateness: lateness, payload: body))
    case .drain: return .drain
    case .still: return .still(try StillImageRequest(reading: &body))
    case nil: throw unknown(type)
    }
  }

  private static func configuration(
    _ body: inout ByteBuffer
  ) throws(TranscodeProtocolError) -> TranscodeConfiguration {
    guard let codec = CodecID(workerNumberIn: &body, of: .video),
      let timescale: UInt32 = body.readInteger(), timescale > 0, timescale <= UInt32(Int32.max),
      let frameDuration: UInt32 = body.readInteger(), frameDuration <= UInt32(Int32.max),
      let color = body.readBytes(length: 3), let count: UInt8 = body.readInteger(), count <= TranscodeLimits.rungs
    else { throw TranscodeProtocolError(description: "an invalid configuration") }
    var rungs: [TranscodeConfiguration.Rung] = []
    for _ in 0..<count {
      guard let width: UInt16 = body.readInteger(), let height: UInt16 = body.readInteger(),
        let bitRate: UInt32 = body.readInteger(), bitRate <= UInt32(Int32.max), let preset: UInt8 = body.readInteger(),
        VideoEncoding.Preset.allCases.indices.contains(Int(preset))
      else { throw truncated(RequestType.configure.rawValue) }
      rungs.append(
        TranscodeConfiguration.Rung(
          width: width, height: height, bitRate: bitRate, preset: VideoEncoding.Preset.allCases[Int(preset)]))
    }
    guard body.readableBytes <= TranscodeLimits.recordBytes else {
      throw TranscodeProtocolError(description: "a record of \(body.readableBytes) bytes")
    }
    return TranscodeConfiguration(
      codec: codec, record: Array(body.readableBytesView), timescale: timescale, frameDuration: frameDuration,
      color: color, rungs: rungs)
  }

  // MARK: Replies

  static func encode(_ reply: TranscodeReply) -> ByteBuffer {
    switch reply {
    case .track(let rung, let record):
      return message(ReplyType.track.rawValue) { out in
        out.writeInteger(rung)
        out.writeImmutableBuffer(record)
      }
    case .frame(let frame):
      return message(ReplyType.frame.rawValue, reserving: 10 + frame.payload.readableBytes) { out in
        out.writeInteger(frame.rung)
        out.writeInteger(frame.presentationTime)
        out.writeInteger(UInt8(frame.isSync ? 1 : 0))
        out.writeImmutableBuffer(frame.payload)
      }
    case .consumed(let frames, let dropped):
      return message(ReplyType.consumed.rawValue) { out in
        out.writeInteger(frames)
        out.writeInteger(dropped)
      }
    case .drained: return message(ReplyType.drained.rawValue) { _ in }
    case .failed(let text):
      return message(ReplyType.failed.rawValue) { $0.writeBytes(text.utf8.prefix(TranscodeLimits.textBytes)) }
    case .still(let jpeg):
      return message(ReplyType.still.rawValue, reserving: jpeg.readableBytes) { $0.writeImmutableBuffer(jpeg) }
    }
  }

  static func reply(_ type: UInt8, _ body: ByteBuffer) throws(TranscodeProtocolError) -> TranscodeReply {
    var body = body
    switch ReplyType(rawValue: type) {
    case .track:
      guard let rung: UInt8 = body.readInteger(), body.readableBytes <= TranscodeLimits.recordBytes else {
        throw truncated(type)
      }
      return .track(rung: rung, record: body)
    case .frame:
      guard let rung: UInt8 = body.readInteger(), let time: Int64 = body.readInteger(),
        let sync: UInt8 = body.readInteger()
      else { throw truncated(type) }
      return .frame(
        TranscodeReply.RungFrame(rung: rung, presentationTime: time, isSync: sync == 1, payload: body))
    case .consumed:
      guard let frames: UInt32 = body.readInteger(), let dropped: UInt32 = body.readInteger() else {
        throw truncated(type)
      }
      return .consumed(frames: frames, dropped: dropped)
    case .drained: return .drained
    case .failed:
      guard body.readableBytes <= TranscodeLimits.textBytes else { throw truncated(type) }
      return .failed(String(buffer: body))
    case .still:
      guard (1...TranscodeLimits.stillBytes).contains(body.readableBytes) else { throw truncated(type) }
      return .still(body)
    case nil: throw unknown(type)
    }
  }

  // MARK: Frames

  private static func message(
    _ type: UInt8, reserving capacity: Int = 64, _ write: (inout ByteBuffer) -> Void
  ) -> ByteBuffer {
    var out = ByteBuffer()
    out.reserveCapacity(5 + capacity)
    out.writeInteger(UInt32(0))
    out.writeInteger(type)
    write(&out)
    out.setInteger(UInt32(clamping: out.readableBytes - 4), at: 0)
    return out
  }

  private static func truncated(_ type: UInt8) -> TranscodeProtocolError {
    TranscodeProtocolError(description: "a message of type \(type) that is too short or too long")
  }

  private static func unknown(_ type: UInt8) -> TranscodeProtocolError {
    TranscodeProtocolError(description: "a message of the unknown type \(type)")
  }
}

/// Splits incoming bytes, in pieces of any size, into messages. A length beyond the limit is refused before its body is
/// buffered.
struct TranscodeFrameReader: Sendable {
  /// Most bytes of a message, counted from its type.
  var limit: UInt32
  private var buffer = ByteBuffer()

  /// - Parameter limit: most bytes of a message, counted from its type.
  init(limit: Int = TranscodeLimits.messageBytes) { self.limit = UInt32(clamping: limit) }

  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    buffer.writeBytes(bytes)
  }

  /// Type and body of the next whole message. Nil if it is incomplete.
  mutating func next() throws(TranscodeProtocolError) -> (type: UInt8, body: ByteBuffer)? {
    guard let length = buffer.getInteger(at: buffer.readerIndex, as: UInt32.self) else { return nil }
    guard length >= 1, length <= limit else {
      throw TranscodeProtocolError(description: "a message of \(length) bytes")
    }
    guard buffer.readableBytes >= 4 + Int(length) else { return nil }
    buffer.moveReaderIndex(forwardBy: 4)
    guard var message = buffer.readSlice(length: Int(length)), let type: UInt8 = message.readInteger() else {
      return nil
    }
    // A buffer of its own size, so that neighbouring messages are not kept in memory.
    let body = ByteBuffer(bytes: message.readableBytesView)
    buffer.discardReadBytes()
    return (type, body)
  }
}

internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing

/// NetConnection and NetStream commands (RTMP 7.2), server side: from connect to publish and to the end. Responses are
/// appended to a buffer. Everything else is returned as an outcome.
struct CommandSession {
  /// What the caller must do after a command.
  enum Outcome: Equatable {
    case nothing
    /// The peer wants to publish. Call `accept` or `refuse`.
    case publish(PublishIntent)
    /// The peer has ended its publication.
    case finished
    /// A response with this reason was written. Close the connection after it.
    case refused(String)
  }

  /// A publish command with the data of the connect command before it.
  struct PublishIntent: Equatable {
    var stream: StreamName
    var key: Secret?
    /// Name of the peer's software, as stated by the peer; not trusted.
    var software: String

    /// Compares stream and software. Keys are compared elsewhere, in constant time.
    static func == (a: Self, b: Self) -> Bool { a.stream == b.stream && a.software == b.software }
  }

  private struct Connection {
    var application: String
    var software: String
    var key: Secret?
  }

  private enum State {
    case fresh
    case connected(Connection)
    case asking(Connection, stream: UInt32)
    case publishing(Connection, stream: UInt32)
    case closed
  }

  private var state = State.fresh
  private var commands = 0
  private var streams: UInt32 = 0
  var writer = ChunkWriter()

  /// Window for acknowledgements and for the peer's bandwidth, in bytes.
  private static let window: UInt32 = 2_500_000
  /// Responses are small; each fits into one chunk.
  private static let answerChunkSize = 4096

  /// The peer wants to publish and waits for `accept` or `refuse`.
  var isAsking: Bool { if case .asking = state { true } else { false } }

  private var isPublishing: Bool { if case .publishing = state { true } else { false } }

  /// Handles one decoded command message (types 20 and 17). `messageStream` is the stream it arrived on.
  mutating func receive(
    _ values: [AMFValue], messageStream: UInt32, to out: inout ByteBuffer
  ) throws(WireError) -> Outcome {
    guard case .string(let name)? = values.first else {
      throw WireError(.malformed, "a command without a name")
    }
    if !isPublishing {
      commands += 1
      guard commands <= RTMPLimits.commandsBeforePublish else {
        throw WireError(.limit, "more than \(RTMPLimits.commandsBeforePublish) commands without publishing")
      }
    }
    let transaction = values.count > 1 ? values[1].number ?? 0 : 0
    switch name {
    case "connect": return connect(transaction, values.count > 2 ? values[2] : .null, to: &out)
    case "createStream": createStream(transaction, to: &out)
    case "publish": return publish(values, messageStream: messageStream, transaction, to: &out)
    case "play", "play2": return play(values, messageStream: messageStream, to: &out)
    case "FCPublish": answerFCPublish(values, transaction, to: &out)
    case "FCUnpublish": return unpublish(to: &out)
    case "closeStream": return unpublish(to: &out)
    case "deleteStream":
      // There is only one stream, so the number is ignored.
      return unpublish(to: &out)
    case "releaseStream", "_checkbw", "checkBandwidth", "getStreamLength":
      result(transaction, [.null, name == "getStreamLength" ? .number(0) : .undefined], to: &out)
    case "_result", "_error", "onStatus", "onBWDone": break
    default:
      // Unknown commands get a response only if the peer expects one.
      if transaction != 0 { result(transaction, [.null, .undefined], to: &out) }
    }
    return .nothing
  }

  // MARK: decisions of the caller

  /// Starts the publication: sends StreamBegin and NetStream.Publish.Start.
  mutating func accept(to out: inout ByteBuffer) {
    guard case .asking(let connection, let stream) = state else { return }
    state = .publishing(connection, stream: stream)
    commands = 0
    writer.writeUserControl(.streamBegin, stream, to: &out)
    status(
      stream, level: "status", code: "NetStream.Publish.Start", description: "weir accepts the stream", to: &out)
  }

  /// Refuses or ends the publication. Sends the reason; the caller closes the connection.
  mutating func refuse(code: String, reason: String, to out: inout ByteBuffer) {
    switch state {
    case .asking(_, let stream), .publishing(_, let stream):
      status(stream, level: "error", code: code, description: reason, to: &out)
    default: status(0, level: "error", code: code, description: reason, to: &out)
    }
    state = .closed
  }

  // MARK: commands

  private mutating func connect(_ transaction: Double, _ object: AMFValue, to out: inout ByteBuffer) -> Outcome {
    guard case .fresh = state else { return .nothing }
    let (application, applicationKey) = PublishAddress.application(of: object["app"]?.string ?? "")
    do throws(WireError) {
      try PublishAddress.check(application: application)
    } catch {
      writer.writeCommand(
        [
          .string("_error"), .number(transaction), .null,
          Self.information(level: "error", code: "NetConnection.Connect.Rejected", description: error.reason),
        ], to: &out)
      state = .closed
      return .refused(error.reason)
    }
    let software = PeerText.printable(object["flashVer"]?.string ?? "", limit: 64)
    let key = applicationKey ?? object["tcUrl"]?.string.flatMap { PublishAddress.key(ofURL: $0) }
    state = .connected(Connection(application: application, software: software, key: key))
    writer.writeWindowAcknowledgementSize(Self.window, to: &out)
    writer.writeSetPeerBandwidth(Self.window, to: &out)
    writer.writeSetChunkSize(Self.answerChunkSize, to: &out)
    var information: [AMFValue.Property] = [
      .init(name: "level", value: .string("status")),
      .init(name: "code", value: .string("NetConnection.Connect.Success")),
      .init(name: "description", value: .string("weir is listening")),
      .init(name: "objectEncoding", value: .number(0)),
    ]
    // Enhanced RTMP v2, "Enhancing NetConnection connect". Sent to every client; old ones ignore it.
    information += EnhancedRTMP.capabilities
    writer.writeCommand(
      [
        .string("_result"), .number(transaction),
        .object(["fmsVer": .string("FMS/3,5,7,7009"), "capabilities": .number(31), "mode": .number(1)]),
        .object(information),
      ], to: &out)
    return .nothing
  }

  private mutating func createStream(_ transaction: Double, to out: inout ByteBuffer) {
    if case .fresh = state { return }
    streams = streams &+ 1
    result(transaction, [.null, .number(Double(streams))], to: &out)
  }

  private mutating func publish(
    _ values: [AMFValue], messageStream: UInt32, _ transaction: Double, to out: inout ByteBuffer
  ) -> Outcome {
    guard case .connected(let connection) = state else {
      if case .fresh = state { return refusal(messageStream, "publish before connect", to: &out) }
      return .nothing
    }
    do throws(WireError) {
      let text = values.count > 3 ? values[3].string ?? "" : ""
      let (stream, key) = try PublishAddress.stream(of: text, in: connection.application)
      state = .asking(connection, stream: messageStream)
      return .publish(PublishIntent(stream: stream, key: key ?? connection.key, software: connection.software))
    } catch {
      return refusal(messageStream, error.reason, to: &out)
    }
  }

  private mutating func refusal(_ stream: UInt32, _ reason: String, to out: inout ByteBuffer) -> Outcome {
    status(stream, level: "error", code: "NetStream.Publish.BadName", description: reason, to: &out)
    state = .closed
    return .refused(reason)
  }

  private mutating func play(_ values: [AMFValue], messageStream: UInt32, to out: inout ByteBuffer) -> Outcome {
    let application = if case .connected(let connection) = state { connection.application } else { "" }
    let stream = try? PublishAddress.stream(of: values.count > 3 ? values[3].string ?? "" : "", in: application)
    let reason = "weir plays over HTTP: /watch/\(stream?.name.description ?? "NAME")"
    status(messageStream, level: "error", code: "NetStream.Play.Failed", description: reason, to: &out)
    state = .closed
    return .refused(reason)
  }

  /// Flash Media Live Encoder sends FCPublish before publish and may wait for onFCPublish.
  private func answerFCPublish(_ values: [AMFValue], _ transaction: Double, to out: inout ByteBuffer) {
    result(transaction, [.null, .undefined], to: &out)
    writer.writeCommand(
      [
        .string("onFCPublish"), .number(0), .null,
        Self.information(level: "status", code: "NetStream.Publish.Start", description: "FCPublish received"),
      ], to: &out)
  }

  private mutating func unpublish(to out: inout ByteBuffer) -> Outcome {
    guard case .publishing(let connection, let stream) = state else { return .nothing }
    state = .connected(connection)
    status(
      stream, level: "status", code: "NetStream.Unpublish.Success", description: "the stream has ended", to: &out)
    return .finished
  }

  // MARK: forms of responses

  private func result(_ transaction: Double, _ values: [AMFValue], to out: inout ByteBuffer) {
    writer.writeCommand([.string("_result"), .number(transaction)] + values, to: &out)
  }

  private func status(_ stream: UInt32, level: String, code: String, description: String, to out: inout ByteBuffer) {
    writer.writeCommand(
      [
        .string("onStatus"), .number(0), .null,
        Self.information(level: level, code: code, description: description),
      ], chunkStream: ChunkWriter.statusStream, messageStream: stream, to: &out)
  }

  private static func information(level: String, code: String, description: String) -> AMFValue {
    .object(["level": .string(level), "code": .string(code), "description": .string(description)])
  }
}

/// Capabilities of Enhanced RTMP v2 that weir has, for its connect response. The codecs are those of `FLVCodecName`.
private enum EnhancedRTMP {
  /// FourCcInfoMask CanForward: the server passes the codec on.
  private static let canForward: AMFValue = .number(4)
  /// CapsExMask: multitrack, ModEx and its nanosecond offset. No reconnect requests.
  private static let capsEx: AMFValue = .number(2 + 4 + 8)

  static let capabilities: [AMFValue.Property] = [
    .init(
      name: "fourCcList",
      value: .strictArray((FLVCodecName.fourCCs(.video) + FLVCodecName.fourCCs(.audio)).map { .string($0) })),
    .init(name: "videoFourCcInfoMap", value: map(.video)),
    .init(name: "audioFourCcInfoMap", value: map(.audio)),
    .init(name: "capsEx", value: capsEx),
  ]

  private static func map(_ kind: MediaKind) -> AMFValue {
    .object(FLVCodecName.fourCCs(kind).map { .init(name: $0, value: canForward) })
  }
}

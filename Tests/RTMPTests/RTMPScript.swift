import Base
import FMP4
import NIOCore
import Publishing
@testable import RTMP
import Support

/// What a publisher sends, piece by piece, written independently of the server's own writer.
enum RTMPScript {
  static let c0c1: [UInt8] = [3] + [UInt8](repeating: 0, count: 8) + (0..<1528).map { UInt8(truncatingIfNeeded: $0) }
  static let c2 = [UInt8](repeating: 0, count: 1536)
  static let handshake = c0c1 + c2

  /// A basic header in the form that the chunk stream's number asks for.
  static func basicHeader(_ format: UInt8, _ chunkStream: Int) -> [UInt8] {
    switch chunkStream {
    case ..<64: [format << 6 | UInt8(chunkStream)]
    case ..<320: [format << 6, UInt8(chunkStream - 64)]
    default: [format << 6 | 1, UInt8((chunkStream - 64) & 0xFF), UInt8((chunkStream - 64) >> 8)]
    }
  }

  static func u24(_ value: UInt32) -> [UInt8] {
    [UInt8(value >> 16 & 0xFF), UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)]
  }
  static func u32(_ value: UInt32) -> [UInt8] { [UInt8(value >> 24)] + u24(value & 0xFF_FFFF) }

  /// A whole message: a type 0 header and type 3 chunks, with or without extended timestamps on the latter.
  static func message(
    _ type: UInt8, _ payload: [UInt8], time: UInt32 = 0, stream: UInt32 = 1, chunkStream: Int = 4, chunkSize: Int = 128,
    repeatsExtendedTime: Bool = true
  ) -> [UInt8] {
    let isExtended = time >= 0xFF_FFFF
    var bytes = basicHeader(0, chunkStream) + u24(isExtended ? 0xFF_FFFF : time) + u24(UInt32(payload.count)) + [type]
    bytes += [UInt8(stream & 0xFF), UInt8(stream >> 8 & 0xFF), UInt8(stream >> 16 & 0xFF), UInt8(stream >> 24)]
    if isExtended { bytes += u32(time) }
    var index = 0
    repeat {
      let end = min(index + chunkSize, payload.count)
      bytes += payload[index..<end]
      index = end
      if index < payload.count {
        bytes += basicHeader(3, chunkStream)
        if isExtended, repeatsExtendedTime { bytes += u32(time) }
      }
    } while index < payload.count
    return bytes
  }

  static func amf(_ values: [AMFValue]) -> [UInt8] {
    var buffer = ByteBuffer()
    for value in values { AMF0.write(value, to: &buffer) }
    return Array(buffer.readableBytesView)
  }

  static func command(_ values: [AMFValue], stream: UInt32 = 0) -> [UInt8] {
    message(20, amf(values), stream: stream, chunkStream: 3)
  }

  static func connect(app: String = "live", tcURL: String = "rtmp://host/live") -> [UInt8] {
    command([
      .string("connect"), .number(1),
      .object(["app": .string(app), "flashVer": .string("FMLE/3.0 (test)"), "tcUrl": .string(tcURL)]),
    ])
  }

  static let createStream = command([.string("createStream"), .number(4), .null])

  static func publish(_ name: String = "cam") -> [UInt8] {
    command([.string("publish"), .number(5), .null, .string(name), .string("live")], stream: 1)
  }

  /// Everything up to the publish command.
  static func opening(_ name: String = "cam") -> [UInt8] {
    handshake + connect() + command([.string("releaseStream"), .number(2), .null, .string(name)])
      + command([.string("FCPublish"), .number(3), .null, .string(name)]) + createStream + publish(name)
  }

  static func metadata(video: Bool = true, audio: Bool = true, rate: Double? = nil) -> [UInt8] {
    var properties: [AMFValue.Property] = [.init(name: "encoder", value: .string("script 1"))]
    if video { properties.append(.init(name: "videocodecid", value: .number(7))) }
    if audio { properties.append(.init(name: "audiocodecid", value: .number(10))) }
    if let rate { properties.append(.init(name: "framerate", value: .number(rate))) }
    return message(18, amf([.string("@setDataFrame"), .string("onMetaData"), .ecmaArray(properties)]))
  }

  static func hex(_ text: String) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = text[...]
    while rest.count >= 2 {
      bytes.append(UInt8(rest.prefix(2), radix: 16) ?? 0)
      rest = rest.dropFirst(2)
    }
    return bytes
  }

  // Tags.

  static func avcHeader(_ record: [UInt8] = PublishedRecord.avc25) -> [UInt8] { [0x17, 0, 0, 0, 0] + record }

  /// An access unit of one slice.
  static func avcFrame(key: Bool, composition: Int32 = 0, size: Int = 20) -> [UInt8] {
    let nal: [UInt8] = [key ? 0x65 : 0x41] + [UInt8](repeating: 0x88, count: size)
    return [key ? 0x17 : 0x27, 1] + u24(UInt32(bitPattern: composition) & 0xFF_FFFF) + u32(UInt32(nal.count)) + nal
  }

  static func aacHeader(_ configuration: [UInt8] = PublishedRecord.aac48) -> [UInt8] { [0xAF, 0] + configuration }
  static let aacFrame: [UInt8] = [0xAF, 1, 0x21, 0x10, 0x04, 0x60, 0x8C, 0x1C]

  static func video(_ payload: [UInt8], _ time: UInt32) -> [UInt8] {
    message(9, payload, time: time, chunkStream: 6)
  }

  static func audio(_ payload: [UInt8], _ time: UInt32) -> [UInt8] {
    message(8, payload, time: time, chunkStream: 4)
  }

  /// Both sequence headers, and frames (25 a second) and audio from `start` on, interleaved by time.
  static func media(
    from start: UInt32 = 0, milliseconds: UInt32, keyEvery: UInt32 = 25, hasVideo: Bool = true, hasAudio: Bool = true
  ) -> [UInt8] {
    var bytes: [UInt8] = []
    var frames: UInt32 = 0
    var audioSamples: UInt32 = 0
    while true {
      let videoTime = frames * 40
      let audioTime = (audioSamples * 64 + 1) / 3
      if min(hasVideo ? videoTime : .max, hasAudio ? audioTime : .max) >= milliseconds { return bytes }
      if hasVideo, !hasAudio || videoTime <= audioTime {
        bytes += video(avcFrame(key: frames % keyEvery == 0), start &+ videoTime)
        frames += 1
      } else {
        bytes += audio(aacFrame, start &+ audioTime)
        audioSamples += 1
      }
    }
  }

  static let headers = video(avcHeader(), 0) + audio(aacHeader(), 0)
}

/// Drives a session as the listener does, and keeps what comes out.
struct SessionDriver {
  var session = RTMPSession(reading: ClockReading(wall: 1_000_000_000_000_000_000, monotonic: 0))
  var events: [MediaEvent] = []
  var sent: [UInt8] = []
  var logs: [String] = []
  var warnings: [PublicationWarning] = []
  var asked: [CommandSession.PublishIntent] = []
  var endings: [RTMPAction.Ending] = []
  /// Samples that could not be used.
  var lost = 0
  /// Samples before the stream could begin.
  var early = 0
  var now: MonotonicTime = 0
  /// What the gate says; nil admits.
  var refusal: String?
  /// Messages that came too fast are waited for, in no time.
  var waits = true

  mutating func feed(_ bytes: [UInt8]) {
    var buffer = ByteBuffer(bytes: bytes)
    var actions: [RTMPAction] = []
    session.receive(&buffer, now: now, to: &actions)
    perform(actions)
    while waits, let time = session.heldUntil { goOn(time) }
  }

  mutating func goOn(_ time: MonotonicTime) {
    var actions: [RTMPAction] = []
    session.goOn(now: time, to: &actions)
    perform(actions)
  }

  /// The peer has left.
  mutating func takeRest() {
    var actions: [RTMPAction] = []
    session.takeRest(now: now, to: &actions)
    perform(actions)
  }

  mutating func refuse() {
    var actions: [RTMPAction] = []
    session.refuse(reason: "enough", ending: .quiet, to: &actions)
    perform(actions)
  }

  /// The same, in pieces.
  mutating func feed(_ bytes: [UInt8], piece: Int) {
    var index = 0
    while index < bytes.count {
      let end = min(index + piece, bytes.count)
      feed(Array(bytes[index..<end]))
      index = end
    }
  }

  mutating func tick(_ now: MonotonicTime) {
    self.now = now
    var actions: [RTMPAction] = []
    session.tick(now: now, to: &actions)
    perform(actions)
  }

  private mutating func perform(_ actions: [RTMPAction]) {
    for action in actions {
      switch action {
      case .send(let bytes): sent += bytes.readableBytesView
      case .media(.event(let event)): events.append(event)
      case .media(.lost): lost += 1
      case .media(.inBand(.early)): early += 1
      case .media(.inBand): break
      case .media(.warn(let warning)): warnings.append(warning)
      case .media(.withdraw(let warning)): warnings.removeAll { $0 == warning }
      case .media(.log(_, let text)), .log(_, let text): logs.append(text)
      case .refused(let reason): logs.append("refused: \(reason)")
      case .close(let ending): endings.append(ending)
      case .ask(let intent):
        asked.append(intent)
        var more: [RTMPAction] = []
        if let refusal {
          session.refuse(reason: refusal, ending: .failure, to: &more)
        } else {
          session.admit(now: now, to: &more)
        }
        perform(more)
      }
    }
  }

  var samples: [Sample] {
    events.compactMap {
      if case .sample(let sample) = $0 { return sample }
      return nil
    }
  }

  func times(_ track: TrackID) -> [Int64] { samples.filter { $0.track == track }.map(\.decodeTime) }

  var tracks: [[TrackDescription]] {
    events.compactMap {
      if case .tracks(let tracks) = $0 { return tracks }
      return nil
    }
  }

  var discontinuities: Int {
    events.count {
      if case .discontinuity = $0 { return true }
      return false
    }
  }

  var ending: EndReason? {
    if case .end(let reason)? = events.last { return reason }
    return nil
  }

  /// The commands among the answers, in order.
  func answers() throws -> [[AMFValue]] {
    var bytes = ByteBuffer(bytes: sent.dropFirst(1 + 2 * 1536))
    var reader = ChunkReader()
    var commands: [[AMFValue]] = []
    while let message = try reader.next(&bytes, now: 0) {
      guard message.type == RTMPMessageType.commandAMF0 else { continue }
      var payload = message.payload
      commands.append(try AMF0.readAll(&payload))
    }
    return commands
  }

  /// How often the session said how much it has got.
  func acknowledgements() throws -> Int {
    var bytes = ByteBuffer(bytes: sent.dropFirst(1 + 2 * 1536))
    var reader = ChunkReader()
    var count = 0
    while let message = try reader.next(&bytes, now: 0) { count += message.type == 3 ? 1 : 0 }
    return count
  }

  /// The codes of all status answers.
  func codes() throws -> [String] {
    try answers().compactMap { $0.last?["code"]?.string }
  }

  /// What `.progress` told, in milliseconds.
  var progress: [Int64] {
    events.compactMap {
      if case .progress(let time) = $0 { return time.rescaled(to: 1000) }
      return nil
    }
  }

  /// Events as text, to compare two runs.
  var transcript: [String] {
    events.map { event in
      switch event {
      case .sample(let sample):
        "\(sample.track.rawValue) \(sample.decodeTime) \(sample.compositionOffset) \(sample.duration ?? 0) "
          + "\(sample.isSync) \(sample.payload.readableBytesView.map { String($0) }.joined(separator: ","))"
      default: "\(event)"
      }
    }
  }
}

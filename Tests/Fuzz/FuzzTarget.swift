@testable import Base
@testable import FMP4
import Glibc
@testable import HTTP
@testable import MPEGTS
import NIOCore
@testable import RecordingFormat
@testable import RTMP
@testable import WebRTC

/// A parser of bytes that untrusted clients send, or that lie in files: it may refuse them, never trap.
enum FuzzTarget: String, CaseIterable {
  /// A session of RTMP from its handshake on, or in the midst of a publication.
  case rtmp
  case chunks
  case amf
  /// FLV's tags, plain and extended, and what they carry.
  case tags
  /// Configuration records of all codecs, and access units below them.
  case codecs
  /// A request's target, its range and its conditions.
  case http
  /// An HTTP/1.1 connection, read by weir's scanner and by NIO's decoder.
  case scanner
  /// An HTTP/2 connection, cut anywhere, and what a server sends on it.
  case http2
  /// Field sections of HTTP/2.
  case fields
  case recording
  /// Fragmented MP4 that is pushed, cut anywhere.
  case demux
  /// A file in the folder of recordings.
  case file
  /// Names of streams, of media, of renditions and of recordings.
  case names
  /// A media playlist's query.
  case directives
  /// Times of day, and durations.
  case times
  /// A target's query, as the routes of the catalogue read it.
  case query
  /// What proxies say of their clients.
  case proxies
  /// An MPEG transport stream, cut anywhere, as a publication.
  case ts
  /// Messages between the server and the worker of SRT, and callers' stream IDs.
  case srt
  /// Requests of ICE.
  case stun
  /// Offers of WebRTC, and their answers.
  case sdp
  /// Packets of RTP with H.264 and audio, in any order.
  case rtp
  /// Packets of RTP with AV1.
  case av1rtp
  /// Packets of RTP with VP9, and with VP8.
  case vp9rtp
  case vp8rtp
  /// Payloads of H.264 by RTP, and of HEVC.
  case h264rtp
  case h265rtp
  case rtcp
  /// Closed captions in the messages of an access unit.
  case captions
  /// PES packets of each kind of track, without the packets around them.
  case pes
  /// Sections of tables and of cues.
  case psi
  /// Audio frames behind their headers.
  case adts
  /// AAC in LOAS, and AC-3 and E-AC-3 by their sync words.
  case latm
  /// Frames of MP1, MP2 and MP3.
  case mpegaudio
  /// A row of the catalogue or of the stream state, in a database that another program wrote.
  case catalogue
  /// A token up to its signature, its claims, and keys.
  case token
  /// A target that may begin with a token.
  case prefix
  /// A configuration file.
  case configuration

  static let chosen: FuzzTarget = {
    let name = getenv("WEIR_FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let target = FuzzTarget(rawValue: name) else {
      let known = allCases.map(\.rawValue).joined(separator: " ")
      print("WEIR_FUZZ_TARGET is \"\(name)\"; it can be: \(known)")
      exit(64)
    }
    return target
  }()

  func run(_ bytes: [UInt8]) {
    switch self {
    case .rtmp: Self.session(bytes)
    case .chunks: Self.chunks(bytes)
    case .amf:
      var buffer = ByteBuffer(bytes: bytes)
      _ = try? AMF0.readAll(&buffer)
    case .tags: Self.tags(ByteBuffer(bytes: bytes))
    case .codecs: Self.codecs(bytes)
    case .http: Self.request(bytes)
    case .scanner: Self.connection(bytes)
    case .http2: Self.http2(bytes)
    case .fields: Self.fieldSections(bytes)
    case .recording: Self.scan(bytes)
    case .demux: Self.demux(bytes)
    case .file: Self.open(bytes)
    case .names: Self.names(String(decoding: bytes, as: UTF8.self))
    case .directives, .query: Self.query(bytes)
    case .times: Self.times(String(decoding: bytes, as: UTF8.self))
    case .proxies: Self.proxies(bytes)
    case .catalogue: Self.row(bytes)
    case .token: Self.token(bytes)
    case .prefix: Self.prefix(bytes)
    case .configuration: Self.configuration(String(decoding: bytes, as: UTF8.self))
    case .ts: Self.transport(bytes)
    case .srt: Self.srt(bytes)
    case .stun: Self.stun(bytes)
    case .sdp: Self.sdp(bytes)
    case .rtp: Self.rtp(bytes)
    case .av1rtp: Self.av1rtp(bytes)
    case .vp9rtp: Self.vp9rtp(bytes)
    case .vp8rtp: Self.vp8rtp(bytes)
    case .h264rtp: Self.payloads(bytes, of: H264Payload.self)
    case .h265rtp: Self.payloads(bytes, of: H265Payload.self)
    case .rtcp: Self.rtcp(bytes)
    case .captions: Self.closedCaptions(bytes)
    case .pes: Self.packetized(bytes)
    case .psi: Self.sections(bytes)
    case .adts, .latm: Self.audioFrames(bytes)
    case .mpegaudio: Self.audioFrames(bytes, of: MPEGAudioFrameReader())
    }
  }

  // MARK: RTMP

  private static let begun: SessionDriver = {
    var driver = SessionDriver()
    driver.feed(RTMPScript.handshake)
    return driver
  }()

  private static let publishing: SessionDriver = {
    var driver = begun
    driver.feed(
      RTMPScript.connect() + RTMPScript.createStream + RTMPScript.publish() + RTMPScript.metadata()
        + RTMPScript.headers + RTMPScript.media(milliseconds: 100))
    return driver
  }()

  /// The first byte says where the session is, and into which pieces the rest falls.
  private static func session(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    var driver =
      switch first & 3 {
      case 0: SessionDriver()
      case 1: begun
      default: publishing
      }
    driver.feed(Array(bytes.dropFirst()), piece: first >> 2 == 0 ? max(1, bytes.count) : Int(first >> 2))
    driver.tick(driver.now &+ 3_000_000_000)
  }

  private static func chunks(_ bytes: [UInt8]) {
    var reader = ChunkReader()
    var buffer = ByteBuffer(bytes: bytes)
    while let message = try? reader.next(&buffer, now: .zero) {
      precondition(message.payload.readableBytes <= bytes.count)
    }
  }

  private static func tags(_ bytes: ByteBuffer) {
    for track in (try? FLVVideoTag(bytes))?.tracks ?? [] {
      if case .metadata(let packet) = track.content { _ = ColorInformation.read(packet) }
    }
    _ = FLVAudioTag(bytes)
    _ = ColorInformation.read(bytes)
    _ = AAC.framesWithADTS(in: bytes, most: 64)
    // Two tags of one time.
    for coding in [CodecID.h264, .hevc] {
      var (frames, late): (FLVFrames, [FLVFrames.Late]) = (FLVFrames(coding), [])
      for part in [bytes.readableBytesView.prefix(bytes.readableBytes / 2), bytes.readableBytesView.suffix(9)] {
        let tag = FLVFrames.Frame(payload: ByteBuffer(bytes: part), time: 0, composition: 0, now: .zero)
        for frame in frames.receive(tag, late: &late) { _ = try? frames.record(inFrame: frame.payload) }
      }
      _ = frames.finish()
    }
  }

  // MARK: Codecs

  /// The first byte names the codec, the second how long its record is; an access unit follows.
  private static func codecs(_ bytes: [UInt8]) {
    guard bytes.count > 2 else { return }
    let record = ByteBuffer(bytes: bytes.dropFirst(2).prefix(Int(bytes[1])))
    let unit = ByteBuffer(bytes: bytes.dropFirst(2 + Int(bytes[1])))
    let codec: Codec?
    switch bytes[0] % 6 {
    case 0:
      let configuration = try? H264.Configuration(record: record)
      codec = configuration.map { Codec($0) }
      let found = try? H264.accessUnit(unit, lengthSize: configuration?.lengthSize ?? 4)
      _ = configuration?.updated(withParameterSets: found?.parameterSets ?? [])
    case 1:
      let configuration = try? HEVC.Configuration(record: record)
      codec = configuration.map { Codec($0) }
      let found = try? HEVC.accessUnit(unit, lengthSize: configuration?.lengthSize ?? 4)
      _ = configuration?.updated(withParameterSets: found?.parameterSets ?? [])
    case 2:
      let configuration = try? AV1.Configuration(record: record)
      codec = configuration.map { Codec($0) }
      let found = try? AV1.accessUnit(unit)
      _ = configuration?.updated(withParameterSets: found?.parameterSets ?? [])
    case 3: codec = (try? AAC.Configuration(record: record)).map { Codec($0) }
    case 4:
      codec = (try? Opus.Configuration(record: record)).map { Codec($0) }
      _ = Opus.packetDuration(unit)
    default:
      let configuration = try? VP9.Configuration(record: record)
      codec = configuration.map { Codec($0) }
      let found = try? VP9.accessUnit(unit)
      _ = configuration?.updated(withParameterSets: found?.parameterSets ?? [])
    }
    guard let codec else { return }
    // Whatever was accepted can be described and written.
    let track = TrackDescription(id: .video, codec: codec, timescale: 90_000)
    _ = track.summary
    _ = codec.codecString
    let entry = ByteBuffer.boxes(capacity: track.sampleEntryCapacity) { track.writeSampleEntry(&$0) }
    precondition(entry.readableBytes <= track.sampleEntryCapacity)
  }

  // MARK: HTTP

  /// Lines: the target, the range, a condition and a tag.
  private static func request(_ bytes: [UInt8]) {
    let lines = bytes.split(separator: 10, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    if let target = try? RequestTarget(parsing: lines[0]) {
      _ = target.path
      _ = target.query("_HLS_msn")
      // No route and no file name needs to think of these again.
      precondition(target.segments.allSatisfy { !$0.isEmpty && $0 != ".." && $0 != "." && !$0.contains("/") })
    }
    if lines.count > 1 {
      for length in [0, 1, 1 << 20, Int.max] {
        guard case .part(let range) = ByteRange(lines[1], length: length) else { continue }
        precondition(!range.isEmpty && range.lowerBound >= 0 && range.upperBound <= length)
      }
    }
    if lines.count > 3 {
      _ = EntityTag.list(lines[2], contains: lines[3])
      _ = EntityTag.condition(lines[2], isExactly: lines[3])
    }
  }

  /// The first byte says into which pieces the rest falls.
  private static func connection(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    if let objection = HTTP1Reading.objection(to: Array(bytes.dropFirst()), cutAt: { _ in Int(first) }) {
      print(objection)
      preconditionFailure("the scanner and NIO's decoder do not agree")
    }
  }

  // MARK: Recordings

  private static func scan(_ bytes: [UInt8]) {
    var scanner = RecordingScanner(fileSize: UInt64(bytes.count))
    var steps = 0
    while case .read(let offset, let length) = scanner.step {
      steps += 1
      precondition(steps <= bytes.count + 1 && length > 0 && offset + UInt64(length) <= UInt64(bytes.count))
      scanner.receive(ByteBuffer(bytes: bytes[Int(offset)..<Int(offset) + length]))
    }
    guard case .fragmented(let tables, let length) = scanner.content else { return }
    precondition(length <= UInt64(bytes.count))
    let metadata = MovieMetadata(title: "x", date: "", tool: "", creation: .zero)
    _ = MovieBuilder(tables, metadata: metadata)?.movieHeader(contentLength: length, blockSize: 4096)
  }
}

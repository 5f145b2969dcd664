@testable import FMP4
import NIOCore
@testable import RTMP
import Support

extension FuzzTarget {
  /// Inputs that a parser accepts, from the fixtures of the unit tests: where the fuzzer begins.
  var seeds: [[UInt8]] {
    switch self {
    case .rtmp: Self.sessions
    case .chunks: [RTMPScript.connect() + RTMPScript.createStream, Self.media, Self.extended]
    case .amf: Self.values
    case .tags: Self.tagBodies
    case .codecs: Self.records
    case .http: Self.requests.map { Array($0.utf8) }
    case .scanner: Self.connections.map { [7] + Array($0.utf8) }
    case .http2: [Self.frames(piece: 0), Self.frames(piece: 255)] + Self.http2Connections
    case .fields: [[UInt8(Self.section.count)] + Self.section + [2, 0x82, 0xBE], Self.manyFields]
    case .recording, .demux: [Self.recordingFile].compactMap { $0 }
    case .names:
      Self.words(["cam", "12.m4s", "12.0-2.m4s", "t1-720000.m4s", "init-1.mp4", "20261121T072410Z.mp4", "720p"])
    case .directives: Self.words(["_HLS_msn=7&_HLS_part=2&_HLS_skip=YES", "_HLS_msn=7"])
    case .times: Self.words(["2026-11-21T07:24:10.5+01:00", "1h30m", "200ms", "1.5GiB"])
    case .query: Self.words(["stream=cam&state=running&from=2026-11-21T07:24:10Z&limit=7", "cursor=abc&text=%41+b"])
    case .proxies:
      Self.words(["PROXY TCP4 192.0.2.1 192.0.2.7 4711 1935\r\n", "203.0.113.9, [2001:db8::1]:80,10.0.0.0/8"])
        + [
          [
            0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A, 0x21, 0x11, 0, 12, 1, 2, 3, 4, 5, 6, 7,
            8,
          ]
        ]
    case .catalogue:
      Self.words([
        "tcam\nt20261121T072410Z\ntcompleted\ni1795245850000000000\nr7.5\ni1000\ntavc1.64001f,mp4a.40.2\n"
          + "t1.5\t2\taway\nn\ni0\ni1\nn\ni1\ni7",
        "tcam\ntp\ni1795245850000000000\nt7a\ni1\ni2\ni2\ni1024\ni15360\ni2\ni1\ni1\ni9\ni2\ni0\ni0\ni7\n"
          + "t1\t2\t<Period id=\"1\"></Period>",
      ])
    case .token:
      Self.words([
        #"{"sub":"ann","exp":1800000001.5,"nbf":1,"aud":["weir"],"weir":{"watch":["cam-*"],"admin":"read"}}"#,
        "eyJhbGciOiJIUzI1NiIsImtpZCI6ImEifQ.eyJleHAiOjE4MDAwMDAwMDF9.AAAA",
        #"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#,
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=\n-----END PUBLIC KEY-----\n",
      ])
    case .configuration:
      Self.words([
        "http: {listen: ':8080'}\nstreams:\n  \"*\":\n    record: {mode: manual}\n  cam-*:\n    ladder: [720p@3M, 360p@800k]\n",
        "keys:\n  - {name: a, key: 0123456789abcdef, publish: [cam-*], expiresAt: 2030-01-31T00:00:00Z}\n",
        "hooks:\n  - on: recording.stored\n    run: [/usr/local/bin/archive, \"{path}\"]\n    streams: cam\n",
        #"{"limits": {"viewers": 10}, "streams": {"cam": {"window": "2m", "rewind": null}}}"#,
      ])
    case .prefix:
      Self.words([
        "/~a.b-c_d/live/cam/index.m3u8?_HLS_msn=7", "/%7Ea/watch/cam", "http://x/~a/api/v1/streams/cam", "/~", "/~a?b",
      ])
    case .ts: Self.transportStreams + Self.capturedStreams
    case .srt: Self.srtMessages
    case .stun: Self.webRTCDatagrams + WebRTCSeeds.all(.stun) + RTPSeeds.of(self)
    case .rtcp: Self.webRTCDatagrams + WebRTCSeeds.all(.rtcp) + RTPSeeds.of(self)
    case .rtp:
      Self.webRTCDatagrams + WebRTCSeeds.sessions("H264") + WebRTCSeeds.lossySessions("H264") + RTPSeeds.of(self)
        + [WebRTCSeeds.simulcastSession, Array(WebRTCSeeds.simulcastSession.prefix(4000))]
    case .av1rtp:
      Self.webRTCDatagrams + WebRTCSeeds.sessions("AV1") + WebRTCSeeds.lossySessions("AV1") + RTPSeeds.of(self)
    case .vp9rtp:
      Self.webRTCDatagrams + WebRTCSeeds.sessions("VP9") + WebRTCSeeds.lossySessions("VP9") + RTPSeeds.of(self)
    case .vp8rtp:
      Self.webRTCDatagrams + WebRTCSeeds.sessions("VP8") + WebRTCSeeds.lossySessions("VP8") + RTPSeeds.of(self)
    case .h264rtp: Self.webRTCDatagrams + WebRTCSeeds.payloads + RTPSeeds.of(self)
    case .h265rtp: RTPSeeds.of(self)
    case .sdp:
      Self.words(["H264", "AV1", "VP9", "H265"].map { WebRTCSeeds.offer($0) }) + WebRTCSeeds.offers
        + WebRTCSeeds.peculiarOffers + RTPSeeds.of(self)
    case .captions: Self.captionMessages + Self.capturedCaptions
    case .pes: Self.packetizedStreams + Self.capturedPackets
    case .psi: Self.tables + Self.capturedTables
    case .adts:
      [[0] + TransportScript.adts([1, 2, 3]) + TransportScript.adts([4, 5]), [1, 0x7F, 0xE0, 3, 0xFC, 1, 2]]
        + Self.capturedAudio([("h264-aac", 0), ("one-frame-a-pes", 0), ("ac3", 0x80), ("eac3", 0xC0)])
    case .latm: Self.loasStreams + Self.capturedAudio([("latm", 0x40)])
    case .mpegaudio:
      [
        [0, 0xFF, 0xE3, 0x18, 0xC4] + Array(repeating: 1, count: 68) + [0xFF, 0xE3, 0x18, 0xC4],
        [0, 0xFF, 0xFC, 0xA4, 0x00, 7], [0, 0xFF, 0xFB, 0x00, 0x64],
      ] + Self.capturedAudio([("mp2", 0), ("mp3", 0)])
    case .file: [Self.recordingFile, Self.recordingFile.flatMap(Self.finished)].compactMap { $0 }
    }
  }

  /// A client's preface, its SETTINGS, a WINDOW_UPDATE, its acknowledgement and a PING (RFC 9113 §3.4, §6).
  /// A request without a body, one with a body, and the frames that have no stream.
  private static func frames(piece: UInt8) -> [UInt8] {
    [piece] + [0, 0, 0, 4, 1, 0, 0, 0, 0] + [0, 0, UInt8(section.count), 1, 5, 0, 0, 0, 1] + section
      + [0, 0, UInt8(section.count), 1, 0, 0, 0, 0, 3] + section + [0, 0, 0, 9, 4, 0, 0, 0, 3]
      + [0, 0, 4, 0, 9, 0, 0, 0, 3, 1, 1, 2, 0] + [0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 1, 0, 0]
      + [0, 0, 4, 3, 0, 0, 0, 0, 3, 0, 0, 0, 8] + [0, 0, 8, 6, 0, 0, 0, 0, 0] + Array(repeating: 7, count: 8)
      + [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0]
  }

  /// A POST of a path; the first field is kept in the table, and one is in the code of Huffman.
  private static let section: [UInt8] =
    [0x41, 1, 0x68, 0x83, 0x87, 0x04, 2, 0x2F, 0x78, 0x00, 1, 0x78, 0x83, 0x1C, 0x64, 0x5F]

  private static func words(_ texts: [String]) -> [[UInt8]] { texts.map { Array($0.utf8) } }

  private static let sessions: [[UInt8]] = {
    var whole: [UInt8] = [0]
    whole += RTMPScript.opening() + media
    var begun: [UInt8] = [1]
    begun += RTMPScript.connect() + RTMPScript.createStream + RTMPScript.publish() + media
    return [whole, begun, [2 | 20 << 2] + media, [2] + extended]
  }()

  private static let values: [[UInt8]] = {
    let connect = AMFValue.object(["app": .string("live"), "caps": .boolean(true)])
    let metadata = AMFValue.ecmaArray([.init(name: "width", value: .number(640))])
    return [
      RTMPScript.amf([.string("connect"), .number(1), connect]),
      RTMPScript.amf([.string("onMetaData"), metadata, .null, .undefined, .strictArray([.number(1)]), .date(0)]),
      [0x11, 0x0A, 0x0B, 1, 3, 0x61, 9, 5, 3, 0x61, 1, 1, 2, 3, 1],
    ]
  }()

  private static let tagBodies: [[UInt8]] = {
    var bodies = [
      RTMPScript.avcHeader(), RTMPScript.avcFrame(key: true), RTMPScript.aacHeader(), RTMPScript.aacFrame, colors,
    ]
    bodies.append([0x90] + Array("av01".utf8) + PublishedRecord.av1)
    bodies.append([0x97, 2, 0, 0, 9, 1] + Array("hvc1".utf8) + [0, 0, 1, 7])
    bodies.append([0x90] + Array("Opus".utf8) + PublishedRecord.opusHead)
    bodies.append([0xD4] + Array("hvc1".utf8) + colors)
    return bodies
  }()

  private static let records: [[UInt8]] = {
    let all = [
      PublishedRecord.avc25, RecordFixture.hevcMain10, PublishedRecord.av1, PublishedRecord.aac48,
      PublishedRecord.opusHead,
      [2, 0x80, 1, 0x68, 1, 0, 0, 0, 0, 30, 0x82, 1, 1, 1, 0, 0],
    ]
    return all.enumerated().map { number, record in
      var seed: [UInt8] = [UInt8(number), UInt8(record.count)]
      seed += record
      seed += [0, 0, 0, 4, 0x65, 0x88, 0x84, 0] as [UInt8]
      return seed
    }
  }()

  private static let requests = [
    "/live/cam/abc/av/7.m4s?_HLS_msn=7&_HLS_part=2\nbytes=0-99\nW/\"abc\", *\n\"abc\"",
    "http://host/live/%63am/index.m3u8#x\nbytes=-5\n\"a\"\n\"a\"", "/recordings/cam/x.mp4\nbytes=1-\n\n",
  ]

  private static let connections = [
    "GET /live/cam/e/av/index.m3u8?_HLS_msn=7&_HLS_part=2 HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip, br\r\n"
      + "User-Agent: a\r\nIf-None-Match: \"b\"\r\nRange: bytes=0-\r\n\r\nHEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabcOPTIONS * HTTP/1.1\r\n\r\n",
    "PUT http://h/x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: x\r\n\r\n",
  ]

  private static let media =
    RTMPScript.metadata(rate: 25) + RTMPScript.headers + RTMPScript.media(milliseconds: 120)

  private static let extended =
    RTMPScript.video([0x90] + Array("av01".utf8) + PublishedRecord.av1, 0xFF_FFFF)
    + RTMPScript.audio([0x91] + Array("Opus".utf8) + [0xFC, 1, 2], 0xFFFF_FFF0)
    + RTMPScript.message(22, [9, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0x27, 1, 0, 0, 0, 0, 0, 0, 16], time: 5)

  private static let colors = RTMPScript.amf([
    .string("colorInfo"),
    .object([
      "colorConfig": .object(["colorPrimaries": .number(9), "transferCharacteristics": .number(16)]),
      "hdrCll": .object(["maxFall": .number(400), "maxCLL": .number(1000)]),
    ]),
  ])

  /// A short recording as it is written: init segment and fragments.
  private static let recordingFile: [UInt8]? = {
    guard let video = try? SyntheticMedia.video(), let audio = try? SyntheticMedia.audio() else { return nil }
    var segmenter = Segmenter()
    var events = segmenter.receive(.tracks([video, audio]))
    for sample in SyntheticMedia.interleaved(seconds: 1, offset: 1000) { events += segmenter.receive(.sample(sample)) }
    events += segmenter.receive(.end(.finished))
    var bytes: [UInt8] = []
    for event in events {
      switch event {
      case .initialization(let initSegment): bytes += Array(initSegment.whole.readableBytesView)
      case .fragment(let fragment):
        bytes += Array(FragmentBoxes.interleavedHead(of: fragment).readableBytesView)
        bytes += fragment.payloads.flatMap { Array($0.readableBytesView) }
      default: break
      }
    }
    return bytes
  }()
}

@testable import FMP4
@testable import WebRTC

/// Packets and offers that a fuzzer hardly finds by itself, and that the senders of the captures do not send: each way through a
/// parser has one.
enum RTPSeeds {
  /// A packet as `FuzzTarget.publish` reads it, behind its length. A payload has at most 200 bytes.
  static func packet(
    _ number: Int, at time: Int, _ payload: [UInt8], marker: Bool = true, type: UInt8 = 96, source: UInt8 = 1
  ) -> [UInt8] {
    let head: [UInt8] = [
      0x80, type | (marker ? 0x80 : 0), UInt8(number >> 8 & 255), UInt8(number & 255), 0, 0, UInt8(time & 255), 0, 0, 0,
      0,
      source,
    ]
    return [0, UInt8(head.count + payload.count)] + head + payload
  }

  /// Frames of one packet each.
  private static func frames(_ payloads: [[UInt8]], from first: Int = 1) -> [UInt8] {
    payloads.enumerated().flatMap { packet(first + $0, at: first + $0, $1) }
  }

  /// Each payload behind a gap, which is given up when 250 ms have passed: 25 packets.
  private static func behindGaps(_ payloads: [[UInt8]], _ filler: [UInt8]) -> [UInt8] {
    var (out, number): ([UInt8], Int) = (packet(0, at: 0, filler), 1)
    for payload in payloads {
      out += packet(number + 1, at: number + 1, payload)
      for next in 2..<30 { out += packet(number + next, at: number + next, filler) }
      number += 30
    }
    return out
  }

  // MARK: AV1: Z 0x80, Y 0x40, W 0x30, N 0x08

  private static let av1Frame: [UInt8] = [0x10, 0x30, 1, 2]
  private static let av1: [[UInt8]] = [
    // Elements with lengths; two, of which the last has none; a frame in three packets.
    frames([[0x08, 2, 0x10, 0, 3, 0x30, 1, 2], [0x28, 2, 0x08, 1, 0x30, 5, 5], [0x20, 1, 0x78, 0x40, 1]])
      + packet(4, at: 4, [0x50, 0x30, 1, 2], marker: false) + packet(5, at: 4, [0xD0, 4, 5], marker: false)
      + packet(6, at: 4, [0x90, 6]),
    // With an extension and a size, without the extension, with a size that exceeds, and lengths that exceed.
    frames([
      [0x10, 0x36, 8, 2, 9, 9], [0x10, 0x34], [0x10, 0x32, 9, 1], [0, 0x80, 0x80, 0x80, 0x80, 1], [0, 9, 0x30],
    ]),
    // A size of two bytes; what goes on without a beginning, and what does not go on.
    frames([[0x10, 0x30] + [UInt8](repeating: 7, count: 150), [0x90, 1], [0x50, 0x30, 1], av1Frame])
      + packet(5, at: 5, [0x50, 0x30, 1], marker: false) + packet(6, at: 5, av1Frame),
    behindGaps([av1Frame, [0x18, 0x08, 1], [0x90, 1], []], av1Frame)
      + packet(200, at: 200, [0x50, 0x30], marker: false) + packet(202, at: 201, av1Frame)
      + frames([[UInt8]](repeating: av1Frame, count: 30), from: 203),
  ]

  // MARK: VP9: I 0x80, P 0x40, L 0x20, F 0x10, B 0x08, E 0x04, V 0x02

  private static let vp9Key: [UInt8] = [0x82, 0x49, 0x83, 0x42, 0x40, 0x27, 0xF0, 0x16, 0x76, 0x06]
  private static let vp9: [[UInt8]] = [
    frames(
      [
        [0x0C], [0x8C, 5], [0x8C, 0x80, 6], [0xAC, 0x80, 7, 0, 1], [0xBC, 8, 0], [0xDC, 9, 3, 4], [0xDC, 10, 3, 3, 3],
        [0x0E, 0x18, 2, 0x80, 1, 0x68, 1, 4, 1],
      ].map { $0 + vp9Key }),
    // Descriptors that exceed the payload.
    frames([
      [0x80], [0x80, 0x80], [0x20], [0x20, 0], [0x50], [0x50, 1], [2], [0x0E, 0xF8, 1], [0x0E, 8], [0x0E, 8, 2, 0x0C],
      [0x0C],
    ]),
    // A beginning within a frame, an end that does not come, further layers.
    packet(1, at: 1, [0x08] + vp9Key, marker: false) + packet(2, at: 1, [0x08] + vp9Key, marker: false)
      + packet(3, at: 1, [0x04, 1]) + packet(4, at: 2, [0x08] + vp9Key, marker: false)
      + packet(5, at: 3, [0xA8, 1, 0, 1] + vp9Key, marker: false) + packet(6, at: 3, [0xA4, 1, 0, 1, 9], marker: false)
      + packet(7, at: 3, [0xAC, 1, 2, 1, 9]),
    behindGaps(
      [[0x8C, 9] + vp9Key, [0xAC, 10, 2, 1, 9], [0xAC, 40, 2, 1, 9], [0x84, 1], [0x0C, 0x86]], [0x8C, 3] + vp9Key),
  ]

  // MARK: VP8: X 0x80, S 0x10; behind it I 0x80, L 0x40, T 0x20, K 0x10

  private static let vp8Key: [UInt8] = [0x10, 0x2F, 0x01, 0x9D, 0x01, 0x2A, 0x80, 0x02, 0x68, 0x01]
  private static let vp8: [[UInt8]] = [
    frames([[0x10], [0x90, 0x80, 5], [0x90, 0xF0, 0x80, 5, 9, 0x20], [0x90, 0]].map { $0 + vp8Key }),
    frames([[0x90], [0x90, 0x80], [0x90, 0x80, 0x80], [0x90, 0x40], [0x90, 0x20], [0x10]]),
    packet(1, at: 1, [0x10] + vp8Key, marker: false) + packet(2, at: 1, [0x10] + vp8Key, marker: false)
      + packet(3, at: 1, [0, 1]) + packet(4, at: 2, [0x10] + vp8Key, marker: false) + packet(5, at: 3, [0, 1]),
    behindGaps(
      [[0x10] + vp8Key, [0x90, 0x80, 4] + vp8Key, [0x90, 0x80, 0x80, 40] + vp8Key, [0, 1]], [0x90, 0x80, 3] + vp8Key),
  ]

  // MARK: packets

  private static let slice: [UInt8] = [0x41, 0x9A, 3]
  private static let rtp: [[UInt8]] = [
    // CSRC, one-byte and two-byte extensions, an end of them, padding, and each of these too long.
    [
      [0x82, 0xE0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2] + slice,
      [0x90, 0xE0, 0, 2, 0, 0, 2, 0, 0, 0, 0, 1, 0xBE, 0xDE, 0, 2, 0x31, 0, 7, 0, 0x40, 0x31, 0xF0, 0] + slice,
      [0x90, 0xE0, 0, 3, 0, 0, 3, 0, 0, 0, 0, 1, 0x10, 0x00, 0, 2, 9, 0, 3, 2, 0, 8, 4, 1] + slice,
      [0x90, 0xE0, 0, 4, 0, 0, 4, 0, 0, 0, 0, 1, 0x10, 0x00, 0, 1, 3, 9, 0, 0] + slice,
      [0x90, 0xE0, 0, 4, 0, 0, 4, 0, 0, 0, 0, 1, 0x12, 0x34, 0, 1, 3, 9, 0, 0] + slice,
      [0xA0, 0xE0, 0, 5, 0, 0, 5, 0, 0, 0, 0, 1] + slice + [0, 2],
      [0xA0, 0xE0, 0, 6, 0, 0, 6, 0, 0, 0, 0, 1, 9], [0x90, 0xE0, 0, 6, 0, 0, 6, 0, 0, 0, 0, 1, 0xBE, 0xDE, 0, 9],
      [0x8F, 0xE0, 0, 6, 0, 0, 6, 0, 0, 0, 0, 1], [0x00],
    ].flatMap { [0, UInt8($0.count)] + $0 },
    // What is missing comes in time, comes again by RTX (97), or is given up; a leap of numbers; the same twice.
    packet(1, at: 1, slice) + packet(4, at: 4, slice) + packet(2, at: 2, slice) + packet(2, at: 2, slice)
      + packet(9, at: 3, [0, 3] + slice, type: 97, source: 2) + packet(10, at: 3, [0, 3] + slice, type: 97, source: 2)
      + packet(11, at: 3, [0], type: 97, source: 2) + packet(6, at: 6, slice)
      + frames([[UInt8]](repeating: slice, count: 30), from: 7) + packet(9000, at: 99, slice)
      + packet(9001, at: 100, slice),
    // Another sender takes the track over; audio with a gap; types of no track.
    packet(1, at: 1, slice) + packet(7, at: 9, slice, source: 3) + packet(2, at: 2, slice)
      + packet(1, at: 1, [0xFC, 1], type: 111, source: 4) + packet(3, at: 3, [0xFC, 1], type: 111, source: 4)
      + frames([[UInt8]](repeating: slice, count: 12), from: 8) + packet(1, at: 1, slice, type: 50, source: 5)
      + packet(1, at: 1, [], type: 96, source: 6),
    // Nothing was read for a while.
    packet(1, at: 1, slice) + packet(3, at: 3, slice) + [0x40, 0],
  ]

  // MARK: H.264 and HEVC, as `FuzzTarget.payloads` reads them

  /// A payload of whole words. 1: the last of its frame, 2: of another frame than the one before, 4: behind a gap.
  private static func unit(_ flags: UInt8, _ payload: [UInt8]) -> [UInt8] {
    [flags, UInt8(payload.count / 4)] + payload
  }

  private static let several: [UInt8] = [0x78, 0, 2, 0x67, 1, 0, 2, 0x68, 1, 0, 5, 0x65, 0x88, 1, 1, 1]
  private static let h264: [[UInt8]] = [
    unit(3, several) + unit(2, [0x7C, 0x85, 0x88, 1]) + unit(0, [0x7C, 5, 1, 1]) + unit(1, [0x7C, 0x45, 1, 1]),
    // Parameter sets in fragments and by themselves, delimiters, filler.
    unit(2, [0x7C, 0x87, 0x42, 0]) + unit(0, [0x7C, 0x47, 1, 1]) + unit(0, [9, 0xF0, 0, 0])
      + unit(1, [0x65, 0x88, 1, 1])
      + unit(3, [0x67, 1, 1, 1]) + unit(3, [0x0C, 0xFF, 0xFF, 0x80]),
    // A beginning within a unit, another unit within it, a middle without a beginning, an end that does not come.
    unit(2, [0x7C, 0x85, 0x88, 1]) + unit(0, [0x7C, 0x85, 0x88, 1]) + unit(1, [0x41, 0x9A, 1, 1])
      + unit(3, [0x7C, 5, 1, 1]) + unit(2, [0x7C, 0x81, 0x9A, 1]) + unit(3, [0x41, 0x9A, 1, 1]),
    // Behind gaps: each kind of beginning, and what is none.
    [
      [0x41, 0x9A, 1, 1], [0x41, 0x1A, 1, 1], [0x67, 1, 1, 1], several, [0x78, 0, 5, 0x41, 0x9A, 1, 1, 1],
      [0x78, 0, 1, 0x1C], [0x7C, 0x85, 0x88, 1], [0x7C, 0x86, 1, 1], [0x7C, 5, 1, 1], [0x7D, 1, 1, 1],
    ].flatMap { unit(7, $0) } + unit(2, [0x41, 0x9A, 1, 1]) + unit(4, [0x41, 0x1A, 1, 1])
      + unit(7, [0x41, 0x9A, 1, 1]),
    // Units that exceed their packet, that are empty, and too many sets.
    unit(3, [0x78, 0, 9, 1]) + unit(3, [0x78, 0, 0, 0]) + unit(3, [])
      + unit(3, [0x78] + [[UInt8]](repeating: [0, 1, 0x67], count: 85).flatMap { $0 }),
  ]

  private static let together: [UInt8] =
    [0x60, 1, 0, 4, 0x40, 1, 0x0C, 1, 0, 4, 0x42, 1, 1, 1, 0, 4, 0x44, 1, 0xC1, 1] + [0, 6, 0x26, 1, 0xAF, 1, 1, 1]
  private static let h265: [[UInt8]] = [
    unit(3, together) + unit(2, [0x62, 1, 0x93, 0xAF]) + unit(0, [0x62, 1, 0x13, 1]) + unit(1, [0x62, 1, 0x53, 1]),
    // Parameter sets in fragments and by themselves, delimiters, filler, the end of a sequence.
    unit(2, [0x62, 1, 0xA1, 1]) + unit(0, [0x62, 1, 0x61, 1]) + unit(0, [0x46, 1, 0x50, 0])
      + unit(1, [0x26, 1, 0xAF, 1]) + unit(3, [0x42, 1, 1, 1]) + unit(3, [0x4C, 1, 0xFF, 0x80])
      + unit(2, [0x02, 1, 0xD0, 1]) + unit(1, [0x48, 1, 0, 0]),
    // A beginning within a unit, another unit within it, a middle without a beginning, an end that does not come.
    unit(2, [0x62, 1, 0x93, 0xAF]) + unit(0, [0x62, 1, 0x93, 0xAF]) + unit(1, [0x02, 1, 0xD0, 1])
      + unit(3, [0x62, 1, 0x13, 1]) + unit(2, [0x62, 1, 0x81, 0xD0]) + unit(3, [0x02, 1, 0xD0, 1]),
    // Behind gaps: each kind of beginning, and what is none.
    [
      [0x02, 1, 0xD0, 1], [0x02, 1, 0x50, 1], [0x40, 1, 1, 1], [0x48, 1, 0, 0], together,
      [0x60, 1, 0, 4, 0x02, 1, 0xD0, 1], [0x60, 1, 0, 4, 0x02, 1, 0x50, 1], [0x62, 1, 0x81, 0xD0], [0x62, 1, 0xA2, 1],
      [0x62, 1, 0x81, 0x50], [0x62, 1, 1, 1], [0x64, 1, 1, 1],
    ].flatMap { unit(7, $0) } + unit(2, [0x02, 1, 0xD0, 1]) + unit(4, [0x02, 1, 0x50, 1])
      + unit(7, [0x02, 1, 0xD0, 1]),
    // Units that exceed their packet, that are empty or less than a header, of types that no frame has, and too many sets.
    unit(3, [0x60, 1, 0, 9]) + unit(3, [0x60, 1, 0, 0]) + unit(3, [0x60, 1, 0, 1, 0x02, 0, 0, 0]) + unit(3, [])
      + unit(3, [0x62, 1, 0xF0, 1]) + unit(3, [0x60, 1, 0, 4, 0x60, 1, 0, 0])
      + unit(3, [0x60, 1, 0, 4, 0x44, 1, 1, 1] + [[UInt8]](repeating: [0, 2, 0x44, 1], count: 64).flatMap { $0 }),
  ]

  // MARK: reports, requests of ICE

  private static let from: [UInt8] = [0, 0, 0, 1, 0, 0, 0, 2]
  private static let rtcp: [[UInt8]] = [
    [0x82, 203, 0, 2] + from + [0x81, 205, 0, 3] + from + [0, 9, 0xFF, 0x01] + [0x81, 206, 0, 2] + from,
    [0x84, 206, 0, 4] + from + [0, 0, 0, 3, 1, 0, 0, 0] + [0x81, 202, 0, 2, 0, 0, 0, 1, 1, 1, 65, 0],
    [0x8F, 206, 0, 5] + from + Array("REMB".utf8) + [1, 0x0B, 0, 9, 0, 0, 0, 2],
    [0x8F, 206, 0, 4] + from + Array("REMB".utf8) + [1, 0xFF, 0, 9], [0x8F, 206, 0, 3] + from + Array("REMX".utf8),
    [0x8F, 205, 0, 4] + from + [0, 1, 0, 1, 0, 0, 0, 1] + [0x83, 203, 0, 1, 0, 0, 0, 1],
    [0x81, 205, 0, 1, 0, 0, 0, 1] + [0x84, 206, 0, 2] + from + [0x82, 206, 0, 2] + from + [
      0x81, 206, 0, 1, 0, 0, 0, 1,
    ],
    [0x81, 205, 1, 2] + from + [[UInt8]](repeating: [0, 9, 0xFF, 0xFF], count: 256).flatMap { $0 },
    [0x80, 200, 0, 1, 0, 0, 0, 1, 0x80, 201, 0, 1, 0, 0, 0, 1],
  ]

  /// A message of STUN with attributes.
  private static func message(_ kind: [UInt8], _ attributes: [UInt8]) -> [UInt8] {
    let length = attributes.count
    return kind + [UInt8(length >> 8), UInt8(length & 255), 0x21, 0x12, 0xA4, 0x42] + Array(1...12) + attributes
  }

  private static let stun: [[UInt8]] = [
    // A name, an unknown attribute, a priority, both roles, a nomination, an integrity, and one behind it.
    message(
      [0, 1],
      [0, 6, 0, 3, 0x61, 0x3A, 0x62, 0, 0x77, 0x77, 0, 0, 0, 0x24, 0, 4, 1, 2, 3, 4, 0x80, 0x29, 0, 8] + Array(0..<8)
        + [0x80, 0x2A, 0, 8] + Array(0..<8) + [0, 0x25, 0, 0, 0, 8, 0, 20] + Array(0..<20) + [0x12, 0x34, 0, 0]),
    message([1, 1], [0, 8, 0, 4, 1, 2, 3, 4]), message([0, 0x11], [0x80, 0x28, 0, 4, 1, 2, 3, 4]),
    message([1, 0x11], [0, 9, 0, 4, 0, 0, 4, 20]), message([0, 1], [0, 6, 0xFF, 0xFF]), message([0, 2], []),
    message([0, 1], [0, 6, 2, 2] + [UInt8](repeating: 0x61, count: 516)),
  ]

  // MARK: offers

  private static let offers: [String] = {
    let whole = WebRTCSeeds.offer("H264")
    let encodings =
      "a=extmap:10 \(Negotiation.ridExtension)\r\na=extmap:11/recvonly \(Negotiation.repairedExtension)\r\n"
      + "a=rid:l send pt=96;max-width=320\r\na=rid:h send\r\na=rid:. send\r\na=rid:x recv\r\na=simulcast:recv q send ~h,x;l;z\r\n"
    let changes = [
      ("actpass", "passive"), ("actpass", "active"), ("actpass", "holdconn"), ("sendonly", "recvonly"),
      ("sendonly", "sendrecv"), ("UDP/TLS/RTP/SAVPF 96 97", "RTP/AVP 96"), ("a=rtcp-mux\r\n", ""),
      ("a=rtcp-mux", "a=bundle-only"), ("m=video 9", "m=video 0"), ("sha-256", "sha-384"), ("AB:", "+B:"),
      ("AB:", "A:"),
      ("BUNDLE 0 1", "BUNDLE 1"), ("a=group", "a=groups"), ("H264/90000", "H265/90000"), ("H264/90000", "H264"),
      ("packetization-mode=1", "profile-level-id=42e01f; packetization-mode=0"), ("opus/48000/2", "PCMA/8000/1"),
      ("SAVPF 111", "SAVPF 0 8 300 x"), ("rtcp-fb:96", "rtcp-fb:*"), ("extmap:3", "extmap:300"),
      ("extmap:4", "extmap:0"),
      ("a=mid:1", "a=ssrc:7 cname:x\r\na=ssrc:7\r\na=ssrc:y\r\na=mid:1"), ("ice-ufrag:abcd", "ice-ufrag:a"),
      ("m=video 9 UDP", "m=video x UDP"), ("m=video 9 ", "m=video 9/2 "), ("v=0", "v=1"), ("\r\n", "\n"),
    ]
    return changes.map { whole.replacing($0.0, with: $0.1) } + [
      whole + encodings, WebRTCSeeds.offer("VP8"),
      WebRTCSeeds.offer("VP9").replacing("packetization-mode=1", with: "profile-id=2"),
      WebRTCSeeds.offer("H265").replacing(
        "packetization-mode=1", with: "profile-id=2;tier-flag=1;level-id=120;interop-constraints=B00000000000"),
      WebRTCSeeds.offer("H265").replacing("packetization-mode=1", with: "tx-mode=MRST"),
      WebRTCSeeds.offer("AV1").replacing("packetization-mode=1", with: "profile=1"), "v=0\r\nm=audio\r\n",
      "a=ice-ufrag:abcd\r\na=ice-pwd:0123456789abcdefghijklmn\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=mid:0\r\n",
      "v=0\r\na=ice-ufrag:abcd\r\na=ice-pwd:0123456789abcdefghijklmn\r\na=sendonly\r\na=rtcp-mux\r\n"
        + whole.split(separator: "m=audio").dropFirst().map { "m=audio" + $0 }.joined(),
    ]
  }()

  /// Those of a target; none for targets that are not of WebRTC.
  static func of(_ target: FuzzTarget) -> [[UInt8]] {
    switch target {
    case .av1rtp: av1
    case .vp9rtp: vp9
    case .vp8rtp: vp8
    case .rtp: rtp
    case .h264rtp: h264
    case .h265rtp: h265
    case .rtcp: rtcp
    case .stun: stun
    case .sdp: offers.map { Array($0.utf8) }
    default: []
    }
  }
}

@testable import MPEGTS
import NIOCore

/// Seeds that other programs made: the transport streams of `Tests/Fixtures`, and what lies in them.
extension FuzzTarget {
  private static let captures = [
    "ffmpeg-5.1-ac3", "ffmpeg-5.1-bframes-aac44", "ffmpeg-5.1-eac3", "ffmpeg-5.1-h264-aac", "ffmpeg-5.1-h264-opus",
    "ffmpeg-5.1-hevc-aac", "ffmpeg-5.1-latm", "ffmpeg-5.1-m2ts", "ffmpeg-5.1-mp2", "ffmpeg-5.1-mp3",
    "ffmpeg-5.1-one-frame-a-pes", "ffmpeg-5.1-two-audio", "ffmpeg-5.1-two-programs", "ffmpeg-5.1-wrap",
    "gstreamer-1.22-bframes-aac",
  ]

  /// Bytes of a seed: below what the fuzzer makes.
  private static let longest = 60_000

  private static func bytes(_ name: String) -> [UInt8] { FixtureFile.bytes("ts/\(name).ts") }

  private static func packets(_ name: String) -> [TransportPacket] {
    var finder = TransportPacketFinder()
    finder.append(ByteBuffer(bytes: bytes(name)))
    var packets: [TransportPacket] = []
    while let bytes = finder.next(isEnd: true) {
      if let packet = TransportPacket(bytes) { packets.append(packet) }
    }
    return packets
  }

  /// Payloads of a PID as `packetized` and `sections` take them.
  private static func pieces(_ packets: [TransportPacket], limit: Int) -> [UInt8] {
    var seed: [UInt8] = []
    for packet in packets {
      guard let payload = packet.payload.map({ Array($0.readableBytesView) }) else { continue }
      var isFirst = packet.isUnitStart
      for start in stride(from: 0, to: payload.count, by: 127) {
        let piece = payload[start..<min(start + 127, payload.count)]
        seed += [UInt8(piece.count) | (isFirst ? 128 : 0)] + piece
        isFirst = false
      }
      if seed.count > limit { break }
    }
    return seed
  }

  /// Packets by PID, of those that begin a PES packet of such a stream (ISO/IEC 13818-1 table 2-22).
  private static func elementary(_ name: String, _ streams: ClosedRange<UInt8>) -> [TransportPacket] {
    let packets = packets(name)
    let first = packets.first { packet in
      guard packet.isUnitStart, let payload = packet.payload else { return false }
      let head = payload.getBytes(at: payload.readerIndex, length: 4) ?? []
      return head.starts(with: [0, 0, 1]) && streams.contains(head[3])
    }
    return packets.filter { $0.pid == first?.pid }
  }

  /// Whole streams, in one piece and in small ones.
  static let capturedStreams: [[UInt8]] = captures.flatMap { name -> [[UInt8]] in
    let bytes = bytes(name)
    return [[0] + bytes.prefix(longest), [33] + bytes.prefix(longest / 4)]
  }

  /// The first byte says the codec, as in `packetized`.
  static let capturedPackets: [[UInt8]] = captures.flatMap { name -> [[UInt8]] in
    let video: UInt8 = name.contains("hevc") ? 1 : 0
    return [
      [video] + pieces(elementary(name, 0xE0...0xEF), limit: longest / 2),
      [6] + pieces(elementary(name, 0xC0...0xDF), limit: longest / 4),
    ]
  }.filter { $0.count > 1 }

  static let capturedTables: [[UInt8]] = captures.map { name in
    let packets = packets(name)
    var association = ProgramAssociation()
    for packet in packets where packet.pid == ProgramAssociation.pid {
      var reader = PSISectionReader()
      for section in packet.payload.map({ reader.receive($0, isUnitStart: packet.isUnitStart) }) ?? [] {
        _ = association.receive(section)
      }
    }
    let tables = [ProgramAssociation.pid] + association.entries.map(\.pid)
    return tables.flatMap { pid in pieces(packets.filter { $0.pid == pid }, limit: 400) }
  }

  /// Elementary streams of audio, behind the byte that says the codec (`audioFrames`).
  static func capturedAudio(_ codes: [(name: String, code: UInt8)]) -> [[UInt8]] {
    codes.map { name, code in
      var bytes: [UInt8] = [code]
      for packet in elementary("ffmpeg-5.1-\(name)", name.contains("ac3") ? 0xBD...0xBD : 0xC0...0xDF) {
        guard let payload = packet.payload.map({ Array($0.readableBytesView) }), payload.count > 9 else { continue }
        bytes += packet.isUnitStart ? payload.dropFirst(9 + Int(payload[8])) : payload[...]
      }
      return Array(bytes.prefix(longest))
    }
  }

  /// Messages of H.264 that GStreamer 1.22 made of CEA-608 and CEA-708 (`cccombiner`, `x264enc`), behind the byte that says
  /// that they are `cc_data` alone.
  static let capturedCaptions: [[UInt8]] = [
    "44fff88080f98080ff0222fe8901ff", "44fff88080f98080ff0222fe8a01ff",
    "51fff88080f98080ff8f3bfe9818feda32fe711ffe1143fe6166fee920fe1033fe6f6efe6510fe340dfe726ffe7720fe7477fe6f00ff",
    "4afff88080f98080ff882efe9838feda32fe701ffe1170fe6169fe6e74fe6564ff", "41fffc9420ff", "42fffc942cfd8080ff",
  ].map { text in
    [0]
      + stride(from: 0, to: text.utf8.count, by: 2).map { at in
        let begin = text.index(text.startIndex, offsetBy: at)
        return UInt8(text[begin..<text.index(begin, offsetBy: 2)], radix: 16) ?? 0
      }
  }
}

import Support

/// A transport stream of another program, and what ffprobe says of its packets.
struct TransportFixture: CustomStringConvertible {
  var name: String
  /// PIDs of the tracks that weir takes.
  var pids: [UInt16]

  var description: String { name }

  static let all = [
    TransportFixture(name: "ffmpeg-5.1-ac3", pids: [256, 257]),
    TransportFixture(name: "ffmpeg-5.1-bframes-aac44", pids: [256, 257]),
    TransportFixture(name: "ffmpeg-5.1-eac3", pids: [256, 257]),
    TransportFixture(name: "ffmpeg-5.1-h264-aac", pids: [256, 257]),
    TransportFixture(name: "ffmpeg-5.1-h264-opus", pids: [256, 257]),
    TransportFixture(name: "ffmpeg-5.1-hevc-aac", pids: [256, 257]),
    TransportFixture(name: "ffmpeg-5.1-latm", pids: [256, 257]),
    // Its audio is private data without a descriptor, which only probing would recognise.
    TransportFixture(name: "ffmpeg-5.1-m2ts", pids: [0x1011]),
    TransportFixture(name: "ffmpeg-5.1-mp2", pids: [256, 257]),
    TransportFixture(name: "ffmpeg-5.1-mp3", pids: [256, 257]),
    TransportFixture(name: "ffmpeg-5.1-one-frame-a-pes", pids: [256, 257]),
    TransportFixture(name: "ffmpeg-5.1-two-audio", pids: [256, 257, 258]),
    TransportFixture(name: "ffmpeg-5.1-two-programs", pids: [256, 257, 258, 259]),
    TransportFixture(name: "ffmpeg-5.1-wrap", pids: [256, 257]),
    TransportFixture(name: "gstreamer-1.22-bframes-aac", pids: [0x41, 0x42]),
  ]

  struct Packet: Equatable {
    var presentation: Int64
    var decode: Int64
  }

  func bytes() throws -> [UInt8] { try Fixtures.bytes("ts/\(name).ts") }

  /// ffprobe's times of each track's packets.
  func packets() throws -> [UInt16: [Packet]] {
    let text = String(decoding: try Fixtures.bytes("ts/\(name).packets"), as: UTF8.self)
    var packets: [UInt16: [Packet]] = [:]
    for line in text.split(separator: "\n") {
      let numbers = line.split(separator: " ").compactMap { Int64($0) }
      guard numbers.count == 3 else { continue }
      packets[UInt16(numbers[0]), default: []].append(Packet(presentation: numbers[1], decode: numbers[2]))
    }
    return packets
  }
}

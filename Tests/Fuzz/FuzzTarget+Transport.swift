@testable import Base
@testable import FMP4
@testable import MPEGTS
import NIOCore
@testable import Publishing
import Support

/// MPEG transport streams, and their parts without the packets around them.
extension FuzzTarget {
  /// The first byte says into which pieces the rest falls. Of an odd one each programme is published. With its bits 1 and 2 the
  /// transport loses bytes before every seventh piece.
  static func transport(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    var publication = TransportPublication(
      reading: ClockReading(wall: WallTime(nanoseconds: 0), monotonic: MonotonicTime(nanoseconds: 0)),
      first % 2 == 1 ? .each : .first)
    var stream = TransportStream(.all)
    var rest = bytes.dropFirst()
    var (actions, events): ([PublicationAction], [TransportEvent]) = ([], [])
    var pieces = 0
    while !rest.isEmpty {
      let piece = ByteBuffer(bytes: rest.prefix(first == 0 ? rest.count : Int(first)))
      rest = rest.dropFirst(piece.readableBytes)
      pieces += 1
      if first & 6 == 6, pieces % 7 == 0 {
        publication.noteLoss(bytes: 8 * 1316)
        stream.noteLoss(bytes: 8 * 1316)
      }
      try? publication.receive(piece, now: MonotonicTime(nanoseconds: 0), to: &actions)
      let further = publication.takeFurther()
      precondition(Set(further.map(\.program)).count <= MPEGTSLimits.programs && (first % 2 == 1 || further.isEmpty))
      stream.receive(piece, to: &events)
    }
    stream.finish(to: &events)
    try? publication.finish(now: MonotonicTime(nanoseconds: 1), to: &actions)
    if let deadline = publication.deadline(after: MonotonicTime(nanoseconds: 1)) {
      precondition(deadline > MonotonicTime(nanoseconds: 1))
    }
    try? publication.tick(now: MonotonicTime(nanoseconds: 3_000_000_000), to: &actions)
    try? publication.tick(now: MonotonicTime(nanoseconds: TransportPublication.programWait + 1), to: &actions)
    precondition(publication.counts.packets <= stream.counts.packets && publication.encoder.utf8.count < 1024)
    precondition(stream.counts.packets * 188 + stream.counts.skippedBytes <= bytes.count + 188)
  }

  /// The first byte names the content. Then payloads follow: a byte with the length, whose highest bit begins a PES packet. Before
  /// an empty payload something is lost, and one that begins a packet drops what is kept.
  static func packetized(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    var pes = PESReader(keepsLength: first & 4 != 0)
    var video = VideoElementReader(first & 1 == 0 ? .h264 : .hevc)
    var audio = AudioElementReader(ADTSReader())
    var clock = ProgramClock.counter
    var events: [ElementEvent] = []
    var rest = bytes.dropFirst()
    while let head = rest.first {
      let payload = ByteBuffer(bytes: rest.dropFirst().prefix(Int(head & 127)))
      rest = rest.dropFirst(1 + Int(head & 127))
      if head == 0 {
        pes.drop()
        video.noteLoss()
        audio.noteLoss(to: &events)
      } else if head == 128 {
        video.drop(to: &events)
      }
      let step = pes.receive(payload, isUnitStart: head & 128 != 0)
      if first & 2 == 0 {
        video.receive(step, clock: &clock, to: &events)
      } else {
        audio.receive(step, clock: &clock, to: &events)
      }
    }
    video.finish(clock: &clock, to: &events)
    precondition(video.heldBytes == 0 && audio.heldBytes <= bytes.count && video.untimed <= bytes.count)
  }

  /// Payloads as in `packetized`. The checksum of each is made right, so that what is behind it is reached.
  static func sections(_ bytes: [UInt8]) {
    var reader = PSISectionReader()
    var association = ProgramAssociation()
    var rest = bytes[...]
    while let head = rest.first {
      let payload = Array(rest.dropFirst().prefix(Int(head & 127)))
      rest = rest.dropFirst(1 + Int(head & 127))
      _ = reader.receive(ByteBuffer(bytes: payload), isUnitStart: head & 128 != 0)
      let sum = MPEGChecksum.of(ByteBuffer(bytes: payload))
      let sealed = payload + [UInt8(sum >> 24), UInt8(sum >> 16 & 255), UInt8(sum >> 8 & 255), UInt8(sum & 255)]
      guard let section = PSISection(ByteBuffer(bytes: sealed)) else { continue }
      _ = association.receive(section)
      precondition(association.entries.count <= MPEGTSLimits.programs)
      if let map = ProgramMap(section) { precondition(map.elements.count <= MPEGTSLimits.elements) }
      if case .cue(let cue)? = SpliceCue(section, pid: 1) { precondition(cue.presentation ?? 0 < 1 << 33) }
    }
  }

  /// The first byte names the codec, and whether the rest is a message or `cc_data` alone.
  static func closedCaptions(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    var message = Array(bytes.dropFirst())
    if first & 2 == 0 {
      message = [4, UInt8(clamping: message.count + 8), 0xB5, 0, 0x31] + Array("GA94".utf8) + [3] + message
    }
    let unit: AccessUnit
    if first & 1 == 0 {
      unit = H264.accessUnit(annexB: ByteBuffer(bytes: [0, 0, 1, 6] + message))
    } else {
      unit = HEVC.accessUnit(annexB: ByteBuffer(bytes: [0, 0, 1, 0x4E, 1] + message), temporalLayers: 1)
    }
    precondition(unit.captions.all.allSatisfy { CaptionService($0.name) == $0 })
  }

  static let captionMessages: [[UInt8]] = [
    [0, 0x41, 0xFF, 0xFC, 0x94, 0x20, 0xFF], [1, 0x43, 0xFF, 0xFF, 0x03, 0x21, 0xFE, 0x41, 0xE1, 0xFE, 9, 0x42, 0xFF],
    [2, 4, 12, 0xB5, 0, 0x31, 0x47, 0x41, 0x39, 0x34, 3, 0x41, 0xFF, 0xFD, 0x15, 0x27, 0x80],
  ]

  /// The first byte names the codec.
  static func audioFrames(_ bytes: [UInt8]) {
    guard let first = bytes.first else { return }
    var reader: any AudioFrameReader = ADTSReader()
    switch first & 0xC0 {
    case 0x40: reader = LATMReader()
    case 0x80: reader = AC3FrameReader()
    case 0xC0: reader = EAC3FrameReader()
    default: break
    }
    if first & 0xC1 == 1, let opus = OpusPacketReader(channels: first >> 1) { reader = opus }
    audioFrames(bytes, of: reader)
  }

  /// Behind the first byte, in two pieces.
  static func audioFrames(_ bytes: [UInt8], of reader: some AudioFrameReader) {
    var reader = reader
    reader.begin()
    for piece in [bytes.dropFirst().prefix(bytes.count / 2), bytes.dropFirst().dropFirst(bytes.count / 2)] {
      reader.append(ByteBuffer(bytes: piece))
      while let frame = reader.next() {
        precondition(frame.samples > 0 && frame.payload.readableBytes < bytes.count)
        _ = try? Codec(reader.coding, record: ByteBuffer(bytes: frame.record))
        precondition(frame.position <= reader.position && reader.position <= bytes.count)
      }
      precondition(reader.heldBytes <= bytes.count && reader.damaged <= bytes.count)
    }
    reader.drop()
    precondition(reader.heldBytes == 0 && reader.next() == nil)
  }

  static let transportStreams: [[UInt8]] = {
    var script = TransportScript()
    let video: [UInt8] = [0, 0, 0, 1, 9, 0xF0] + parameterSets + [0, 0, 1, 0x65, 0x88, 0x84, 0]
    script.add(table: 0, TransportScript.association([(1, pid: 32)]))
    let map = TransportScript.map(1, [(0x1B, 256, []), (0x0F, 257, [10, 4, 0x64, 0x65, 0x75, 0]), (0x86, 258, [])])
    script.add(table: 32, map)
    for index in 0..<4 {
      let time = UInt64(index) * 3600
      script.add(256, TransportScript.pes(0xE0, time + 7200, decode: time, length: 0, video))
      script.add(257, TransportScript.pes(0xC0, time, TransportScript.adts([1, 2, 3]) + TransportScript.adts([4])))
    }
    return [[0] + script.bytes, [33] + script.bytes, [190] + script.bytes] + [programs(first: 0), programs(first: 189)]
  }()

  /// Two programmes with cues, of which the first one leaves, more tracks than are taken, and types that no track is made of.
  private static func programs(first: UInt8) -> [UInt8] {
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(1, pid: 32), (2, pid: 33)]))
    let audio = (0..<20).map { (type: UInt8(0x0F), pid: UInt16(300 + $0), more: [UInt8]()) }
    script.add(
      table: 32, TransportScript.map(1, [(0x1B, 256, []), (0x86, 258, []), (0x10, 259, []), (0x80, 260, [])] + audio))
    script.add(table: 33, TransportScript.map(2, clock: 512, [(0x0F, 513, []), (0x86, 514, []), (0x11, 515, [])]))
    for index in 0..<6 {
      let time = UInt64(index) * 3600
      script.add(table: 258, splice)
      script.add(table: 514, splice)
      script.add(
        256,
        TransportScript.pes(
          0xE0, time + 7200, decode: time, length: 0, [0, 0, 0, 1, 9, 0xF0] + parameterSets + [0, 0, 1, 0x65, 0x88]))
      script.add(513, TransportScript.pes(0xC0, time, TransportScript.adts([1, 2, 3])))
      if index == 4 { script.add(table: 0, TransportScript.association(version: 1, [(2, pid: 33)])) }
    }
    return [first] + script.bytes
  }

  /// A splice_insert with a time (SCTE 35 §9.7.3).
  private static let splice: [UInt8] = {
    let section: [UInt8] = [
      0xFC, 0x30, 37, 0, 0, 0, 0, 0, 10, 0, 0xFF, 0xF0, 20, 5, 0, 0, 0, 7, 0x7F, 0xEF, 0xFE, 0, 0, 0x2A, 0x30, 0xFE, 0,
      0, 0,
      90, 0, 1, 0, 0, 0, 0,
    ]
    let sum = MPEGChecksum.of(ByteBuffer(bytes: section))
    return section + (0..<4).map { UInt8(sum >> UInt32(24 - 8 * $0) & 255) }
  }()

  private static let parameterSets: [UInt8] = {
    let record = try? H264.Configuration(record: ByteBuffer(bytes: PublishedRecord.avc25))
    return (record?.sps ?? []).flatMap { [0, 0, 0, 1] + $0 } + (record?.pps ?? []).flatMap { [0, 0, 0, 1] + $0 }
  }()

  static let packetizedStreams: [[UInt8]] = {
    func pieces(_ bytes: [UInt8]) -> [UInt8] {
      stride(from: 0, to: bytes.count, by: 100).flatMap { start -> [UInt8] in
        let part = bytes[start..<min(start + 100, bytes.count)]
        return [UInt8(part.count) | (start == 0 ? 128 : 0)] + part
      }
    }
    let video = TransportScript.pes(
      0xE0, 7200, decode: 3600, [0, 0, 0, 1, 9, 0xF0] + parameterSets + [0, 0, 1, 0x65, 0x88])
    let audio = TransportScript.pes(0xC0, 7200, TransportScript.adts([1, 2, 3]))
    // Reordered frames without decode times: as many as are looked at, and fewer; in between a loss.
    let shown: [UInt64] = [0, 3, 1, 2, 6, 4, 5, 9, 7, 8, 12, 10, 11]
    let reordered = shown.map { number -> [UInt8] in
      let frame: [UInt8] =
        [0, 0, 0, 1, 9, 0xF0] + (number == 0 ? parameterSets : []) + [0, 0, 1, number == 0 ? 0x65 : 0x41, 0x88, 1]
      return pieces(TransportScript.pes(0xE0, 7200 + number * 3600, frame))
    }
    let fields = interlaced.enumerated().map { index, picture in
      pieces(TransportScript.pes(0xE0, UInt64(index) * 1800 + 3600, decode: UInt64(index) * 1800, picture))
    }
    let (pictures, sounds) = (pieces(video), pieces(audio))
    let (whole, few) = (Array(reordered.joined()), Array(reordered.prefix(4).joined()))
    var broken: [UInt8] = [0]
    broken += few + [0]
    broken += reordered.suffix(5).joined()
    broken += [128] + pictures
    return [
      [0] + pictures + pictures, [6] + sounds + sounds, [6] + sounds + [0] + sounds, [0] + whole, [0] + few, broken,
      [0] + Array(fields.joined()),
    ]
  }()

  /// H.264 of 640x480 whose pictures are fields: a key frame of two, a P frame of two, and one field alone.
  private static let interlaced: [[UInt8]] = {
    let sets: [UInt8] = [
      0, 0, 0, 1, 0x67, 0x64, 0x00, 0x1E, 0xAC, 0xD9, 0x40, 0xB4, 0x24, 0xD8, 0x20, 0x80, 0x00, 0x00, 0x03, 0x00, 0x80,
      0x00,
      0x00, 0x19, 0x0F, 0x8A, 0x14, 0xCB, 0, 0, 0, 1, 0x68, 0xFB, 0xA3, 0xCB, 0x22, 0xC0,
    ]
    let syntax = H264.FieldSyntax(sequenceParameters: Array(sets[4..<28]))
    let numberBits = UInt64(syntax?.frameNumberBits ?? 4)
    // first_mb 0, slice type 7, picture parameter set 0, then the frame's number, field_pic_flag and bottom_field_flag.
    func slice(_ number: UInt64, isBottom: Bool, isKey: Bool = false) -> [UInt8] {
      var bits: UInt64 = 0b1_0001000_1 << numberBits | number
      bits = (bits << 2 | (isBottom ? 3 : 2)) << (53 - numberBits)
      return [0, 0, 0, 1, 9, 0x10, 0, 0, 1, isKey ? 0x65 : 0x41]
        + (0..<8).map { UInt8(bits >> UInt64(56 - 8 * $0) & 255) | ($0 > 2 ? 1 : 0) }
    }
    return [
      sets + slice(0, isBottom: false, isKey: true), slice(0, isBottom: true), slice(1, isBottom: false),
      slice(1, isBottom: true), slice(2, isBottom: false),
    ]
  }()

  static let loasStreams: [[UInt8]] = [
    [0x40] + TransportScript.loas([1, 2, 3]) + TransportScript.loas([4], repeatsConfiguration: false),
    [0x80, 0x0B, 0x77, 0x44, 0x80, 0x08, 0x40, 0x43, 0xE1] + [UInt8](repeating: 0, count: 248) + [0x0B, 0x77],
    [0xC0, 0x0B, 0x77, 0x00, 0x3F, 0x34, 0x86, 0xFF, 0xE0] + [UInt8](repeating: 0, count: 120) + [0x0B, 0x77],
  ]

  static let tables: [[UInt8]] = [
    TransportScript.association([(1, pid: 32), (2, pid: 33)]),
    TransportScript.map(1, [(0x1B, 256, []), (6, 257, [5, 4, 0x4F, 0x70, 0x75, 0x73, 0x7F, 2, 0x80, 2])]),
    [0xFC, 0x30, 22, 0, 0, 0, 0, 0, 10, 0, 0xFF, 0xF0, 5, 6, 0xFE, 0, 0x0D, 0xBB, 0xA0, 0, 0, 1, 2, 3, 4],
    [
      0xFC, 0x30, 37, 0, 0, 0, 0, 0, 10, 0, 0xFF, 0xF0, 20, 5, 0, 0, 0, 7, 0x7F, 0xEF, 0xFE, 0, 0x0D, 0xBB, 0xA0, 0xFE,
      0,
      0, 0, 90, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4,
    ],
    [
      0xFC, 0x30, 44, 0, 0, 0, 0, 0, 10, 0, 0xFF, 0xF0, 5, 6, 0xFE, 0, 0x0D, 0xBB, 0xA0, 0, 22, 2, 20, 0x43, 0x55, 0x45,
      0x49, 0, 0, 0, 8, 0x7F, 0xFF, 1, 0, 0, 0, 2, 0, 0, 0x34, 0, 0, 1, 2, 3, 4,
    ],
  ].map { [UInt8($0.count - 4)] + $0.dropLast(4) }
}

@testable package import MPEGTS
internal import NIOCore
package import Publishing

/// Writes transport streams for tests.
package struct TransportScript {
  package private(set) var bytes: [UInt8] = []
  private var counters: [UInt16: UInt8] = [:]

  package init() {}

  /// What follows another one, with its counters.
  package init(continuing script: TransportScript) { counters = script.counters }

  /// Adds a payload in as many packets as it takes. `isUnit` marks the first of them as a beginning.
  package mutating func add(_ pid: UInt16, _ payload: [UInt8], isUnit: Bool = true, flags: UInt8 = 0) {
    var rest = payload[...]
    var isFirst = isUnit
    while !rest.isEmpty {
      let counter = counters[pid, default: 0]
      counters[pid] = (counter + 1) & 15
      let part = rest.prefix(184)
      rest = rest.dropFirst(184)
      let high = UInt8(pid >> 8) | (isFirst ? 0x40 : 0)
      isFirst = false
      let stuffing = 184 - part.count
      bytes += [0x47, high, UInt8(pid & 255), counter | flags | (stuffing > 0 ? 0x30 : 0x10)]
      if stuffing > 0 { bytes.append(UInt8(stuffing - 1)) }
      if stuffing > 1 { bytes += [0] + [UInt8](repeating: 0xFF, count: stuffing - 2) }
      bytes += part
    }
  }

  package mutating func add(table pid: UInt16, _ sections: [UInt8]...) { add(pid, [0] + sections.flatMap(\.self)) }

  package mutating func skipCounter(_ pid: UInt16) { counters[pid, default: 0] = (counters[pid, default: 0] + 1) & 15 }

  package static func section(_ table: UInt8, _ number: UInt16, version: UInt8 = 0, _ body: [UInt8]) -> [UInt8] {
    let length = body.count + 9
    let head: [UInt8] = [
      table, 0xB0 | UInt8(length >> 8), UInt8(length & 255), UInt8(number >> 8), UInt8(number & 255),
      0xC1 | version << 1,
      0, 0,
    ]
    let bytes = head + body
    let sum = MPEGChecksum.of(ByteBuffer(bytes: bytes))
    return bytes + [UInt8(sum >> 24), UInt8(sum >> 16 & 255), UInt8(sum >> 8 & 255), UInt8(sum & 255)]
  }

  package static func association(version: UInt8 = 0, _ programs: [(UInt16, pid: UInt16)]) -> [UInt8] {
    section(
      0, 1, version: version,
      programs.flatMap { [UInt8($0 >> 8), UInt8($0 & 255), 0xE0 | UInt8($1 >> 8), UInt8($1 & 255)] })
  }

  package static func map(
    _ program: UInt16, version: UInt8 = 0, clock: UInt16 = 256, _ elements: [(type: UInt8, pid: UInt16, more: [UInt8])]
  ) -> [UInt8] {
    var body: [UInt8] = [0xE0 | UInt8(clock >> 8), UInt8(clock & 255), 0xF0, 0]
    for element in elements {
      body += [element.type, 0xE0 | UInt8(element.pid >> 8), UInt8(element.pid & 255)]
      body += [0xF0, UInt8(element.more.count)] + element.more
    }
    return section(2, program, version: version, body)
  }

  package static func time(_ ticks: UInt64, _ prefix: UInt8) -> [UInt8] {
    [
      prefix << 4 | UInt8(ticks >> 29 & 14) | 1, UInt8(ticks >> 22 & 255), UInt8(ticks >> 14 & 254) | 1,
      UInt8(ticks >> 7 & 255), UInt8(ticks << 1 & 254) | 1,
    ]
  }

  package static func pes(
    _ stream: UInt8, _ presentation: UInt64?, decode: UInt64? = nil, length: Int? = nil, _ bytes: [UInt8]
  )
    -> [UInt8]
  {
    var times: [UInt8] = []
    if let presentation { times += time(presentation, decode == nil ? 2 : 3) }
    if let decode { times += time(decode, 1) }
    let flags: UInt8 = presentation == nil ? 0 : decode == nil ? 0x80 : 0xC0
    let size = length ?? 3 + times.count + bytes.count
    return [0, 0, 1, stream, UInt8(size >> 8), UInt8(size & 255), 0x80, flags, UInt8(times.count)] + times + bytes
  }

  /// An ADTS frame of 48 kHz stereo.
  package static func adts(_ payload: [UInt8], rateIndex: UInt8 = 3) -> [UInt8] {
    let size = payload.count + 7
    return [
      0xFF, 0xF1, 1 << 6 | rateIndex << 2, 2 << 6 | UInt8(size >> 11), UInt8(size >> 3 & 255),
      UInt8(size & 7) << 5 | 31,
      0xFC,
    ] + payload
  }

  /// A frame of LOAS with AAC of 48 kHz stereo. Its payload begins within a byte.
  package static func loas(_ payload: [UInt8], repeatsConfiguration: Bool = true) -> [UInt8] {
    var bits: [Bool] = []
    func add(_ value: UInt32, _ count: Int) {
      for bit in (0..<count).reversed() { bits.append(value >> UInt32(bit) & 1 != 0) }
    }
    add(repeatsConfiguration ? 0 : 1, 1)
    if repeatsConfiguration {
      // Version 0, one framing, one frame, one programme, one layer; then 0x1190; frames of stated length.
      for (value, count) in [(0, 1), (1, 1), (0, 6), (0, 4), (0, 3), (0x1190, 16), (0, 3), (0xFF, 8), (0, 1), (0, 1)] {
        add(UInt32(value), count)
      }
    }
    for _ in 0..<payload.count / 255 { add(255, 8) }
    add(UInt32(payload.count % 255), 8)
    for byte in payload { add(UInt32(byte), 8) }
    while bits.count % 8 != 0 { bits.append(false) }
    let bytes = stride(from: 0, to: bits.count, by: 8).map { start in
      bits[start..<start + 8].reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
    }
    return [0x56, 0xE0 | UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes
  }

  package static func events(_ bytes: [UInt8], _ choice: ProgramChoice = .first) -> (TransportStream, [TransportEvent])
  {
    var stream = TransportStream(choice)
    var events: [TransportEvent] = []
    stream.receive(ByteBuffer(bytes: bytes), to: &events)
    stream.finish(to: &events)
    return (stream, events)
  }
}

extension [TransportEvent] {
  package var maps: [ProgramMap] { compactMap { if case .program(let map) = $0 { map } else { nil } } }

  package func units(_ pid: UInt16) -> [ElementUnit] {
    compactMap { if case .element(_, pid, .unit(let unit)) = $0 { unit } else { nil } }
  }

  package func records(_ pid: UInt16) -> [[UInt8]] {
    compactMap {
      if case .element(_, pid, .configuration(_, let record)) = $0 {
        record.getBytes(at: record.readerIndex, length: record.readableBytes)
      } else {
        nil
      }
    }
  }

  package func lost(_ pid: UInt16) -> Int {
    count { if case .element(_, pid, .lost) = $0 { true } else { false } }
  }

  package var splices: [StreamCue] { compactMap { if case .splice(_, let cue) = $0 { cue } else { nil } } }
}

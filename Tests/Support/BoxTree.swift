/// A reader of ISO BMFF boxes that shares nothing with the writer: a judge, and the text of golden box trees.
package struct Box: CustomStringConvertible {
  package let type: String
  /// Everything behind size and type.
  package let payload: [UInt8]
  /// Offset of the box's first byte in what was parsed.
  package let offset: Int
  package let children: [Box]

  private static let containers: Set<String> = [
    "moov", "trak", "mdia", "minf", "dinf", "stbl", "mvex", "moof", "traf", "edts", "udta",
  ]

  /// Nil when sizes do not fit exactly.
  package static func parse(_ bytes: [UInt8], at base: Int = 0) -> [Box]? {
    var boxes: [Box] = []
    var position = 0
    while position < bytes.count {
      guard position + 8 <= bytes.count else { return nil }
      var size = Int(read(bytes, position, 4))
      var header = 8
      if size == 1 {
        guard position + 16 <= bytes.count else { return nil }
        size = Int(read(bytes, position + 8, 8))
        header = 16
      }
      guard size >= header, position + size <= bytes.count else { return nil }
      let type = String(decoding: bytes[position + 4..<position + 8], as: UTF8.self)
      let payload = Array(bytes[position + header..<position + size])
      var children: [Box] = []
      if containers.contains(type) {
        guard let parsed = parse(payload, at: base + position + header) else { return nil }
        children = parsed
      }
      boxes.append(Box(type: type, payload: payload, offset: base + position, children: children))
      position += size
    }
    return boxes
  }

  private static func read(_ bytes: [UInt8], _ at: Int, _ count: Int) -> UInt64 {
    bytes[at..<at + count].reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// A big-endian number of the payload.
  package func number(_ at: Int, _ count: Int = 4) -> Int { Int(truncatingIfNeeded: Self.read(payload, at, count)) }

  /// The first box at a path such as `moof/traf/tfdt`, below this one.
  package func first(_ path: String) -> Box? {
    let parts = path.split(separator: "/", maxSplits: 1)
    guard let name = parts.first, let child = children.first(where: { $0.type == name }) else { return nil }
    return parts.count > 1 ? child.first(String(parts[1])) : child
  }

  package func all(_ type: String) -> [Box] { children.filter { $0.type == type } }

  package var description: String { lines(indent: "").joined(separator: "\n") }

  private func lines(indent: String) -> [String] {
    var text = "\(indent)\(type)"
    if children.isEmpty {
      let shown = payload.prefix(64).map { $0 < 16 ? "0" + String($0, radix: 16) : String($0, radix: 16) }.joined()
      text += " \(payload.count)" + (type == "mdat" ? "" : " \(shown)\(payload.count > 64 ? "…" : "")")
    }
    return [text] + children.flatMap { $0.lines(indent: indent + "  ") }
  }
}

extension Box {
  /// The samples of a `traf`, as a player reads them.
  package func fragmentSamples() -> [(decodeTime: Int, duration: Int, size: Int, flags: Int, offset: Int)] {
    guard let header = first("tfhd"), let run = first("trun"), let time = first("tfdt") else { return [] }
    let headerFlags = header.number(0) & 0xFF_FFFF
    var position = 8
    var defaults: [Int: Int] = [:]
    for (flag, size) in [(0x1, 8), (0x2, 4), (0x8, 4), (0x10, 4), (0x20, 4)] where headerFlags & flag != 0 {
      defaults[flag] = header.number(position, size)
      position += size
    }
    let flags = run.number(0) & 0xFF_FFFF
    let count = run.number(4)
    var at = 8 + (flags & 0x1 != 0 ? 4 : 0)
    var firstFlags: Int?
    if flags & 0x4 != 0 {
      firstFlags = run.number(at)
      at += 4
    }
    var decodeTime = time.number(4, 8)
    var samples: [(decodeTime: Int, duration: Int, size: Int, flags: Int, offset: Int)] = []
    for index in 0..<count {
      func field(_ flag: Int) -> Int? {
        guard flags & flag != 0 else { return nil }
        defer { at += 4 }
        return run.number(at)
      }
      let duration = field(0x100) ?? defaults[0x8] ?? 0
      let size = field(0x200) ?? defaults[0x10] ?? 0
      let sampleFlags = field(0x400) ?? (index == 0 ? firstFlags : nil) ?? defaults[0x20] ?? 0
      let offset = Int(Int32(truncatingIfNeeded: field(0x800) ?? 0))
      samples.append((decodeTime, duration, size, sampleFlags, offset))
      decodeTime += duration
    }
    return samples
  }
}

/// Closed captions of frames that are dropped go on with the next frame. They are triples of `cc_data` (ATSC A/53-4
/// §6.2.3.1), in the order in which frames are shown.
struct CaptionCarryOver {
  /// Triples of one frame: `cc_count` has five bits.
  private static let perFrame = 31
  /// Triples that wait. The oldest go.
  private static let limit = 310

  private var waiting: [UInt8] = []

  /// The captions of a dropped frame.
  mutating func leave(_ triples: [UInt8]) {
    waiting += Self.content(of: triples)
    waiting.removeFirst(max(0, waiting.count - Self.limit * 3))
  }

  /// The captions that the next frame gets instead of its own. Nil: its own.
  mutating func next(_ triples: [UInt8]) -> [UInt8]? {
    guard !waiting.isEmpty else { return nil }
    waiting += Self.content(of: triples)
    let now = Array(waiting.prefix(Self.perFrame * 3))
    waiting.removeFirst(now.count)
    return now
  }

  /// The valid triples, without pairs of CEA-608 that have nothing.
  private static func content(of triples: [UInt8]) -> [UInt8] {
    var kept: [UInt8] = []
    for start in stride(from: 0, through: triples.count - 3, by: 3) {
      let triple = triples[start..<start + 3]
      let isFiller = triple[start] & 3 < 2 && triple[start + 1] & 0x7F == 0 && triple[start + 2] & 0x7F == 0
      if triple[start] & 4 != 0, !isFiller { kept += triple }
    }
    return kept
  }
}

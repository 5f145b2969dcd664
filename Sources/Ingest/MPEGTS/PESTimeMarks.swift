/// Places in the bytes of an elementary stream at which PES packets with times began. A packet's times are those of the
/// first access unit that begins in it (ISO/IEC 13818-1 §2.4.3.7).
struct PESTimeMarks {
  /// In order.
  private var marks: [(position: Int, times: PESReader.Times)] = []

  /// A PES packet begins at a position: bytes of the stream so far.
  mutating func add(_ times: PESReader.Times, at position: Int) {
    if marks.count >= MPEGTSLimits.timeMarks { marks.removeFirst() }
    marks.append((position, times))
  }

  /// The times of an access unit that begins at a position. No times if another one has begun in the same packet.
  mutating func take(at position: Int) -> PESReader.Times {
    guard let index = marks.lastIndex(where: { $0.position <= position }) else { return PESReader.Times() }
    let times = marks[index].times
    marks.removeSubrange(...index)
    return times
  }

  mutating func removeAll() { marks = [] }
}

/// Suggests a known word for a mistyped one.
package enum Suggestion {
  /// The nearest word of `known`. Nil when none is near: at most one edit in three letters.
  package static func nearest(to word: String, among known: [String]) -> String? {
    // A longer text is no typing error, and the comparison would be slow.
    guard word.utf8.count <= 64 else { return nil }
    let ranked = known.map { (word: $0, slips: slips(between: Array(word.utf8), and: Array($0.utf8))) }
    guard let best = ranked.min(by: { $0.slips < $1.slips }) else { return nil }
    return best.slips <= max(1, min(word.utf8.count, best.word.utf8.count) / 3) ? best.word : nil
  }

  /// The edit distance: letters inserted, deleted, replaced or swapped with their neighbour.
  private static func slips(between word: [UInt8], and other: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...other.count)
    for (row, letter) in word.enumerated() {
      var line = [row + 1]
      for (column, wanted) in other.enumerated() {
        var least = min(last[column + 1] + 1, line[column] + 1, last[column] + (letter == wanted ? 0 : 1))
        if row > 0, column > 0, letter == other[column - 1], word[row - 1] == wanted {
          least = min(least, beforeLast[column - 1] + 1)
        }
        line.append(least)
      }
      (beforeLast, last) = (last, line)
    }
    return last[other.count]
  }
}

package import Publishing

/// Finds the first of many patterns that matches a name. Names are looked up; patterns by what stands before their first `*` and
/// behind their last one. Only patterns that have both in common with the name, and more between, are tried one by one.
package struct StreamPatternIndex: Sendable {
  /// What a pattern begins and ends with.
  private struct Ends: Hashable {
    var prefix: ArraySlice<UInt8>
    var suffix: ArraySlice<UInt8>
  }

  private struct Lengths: Hashable {
    var prefix: Int
    var suffix: Int
  }

  private let patterns: [NamePattern]
  private let byName: [StreamName: Int]
  /// The patterns with an `*`, in order.
  private let byEnds: [Ends: [Int]]
  private let lengths: [Lengths]

  package init(_ patterns: [StreamPattern]) {
    var byName: [StreamName: Int] = [:]
    var byEnds: [Ends: [Int]] = [:]
    for (index, pattern) in patterns.enumerated() {
      if let name = pattern.name {
        if byName[name] == nil { byName[name] = index }
        continue
      }
      let pieces = Array(pattern.description.utf8).split(
        separator: UInt8(ascii: "*"), omittingEmptySubsequences: false)
      guard let first = pieces.first, let last = pieces.last else { continue }
      byEnds[Ends(prefix: first, suffix: last), default: []].append(index)
    }
    self.patterns = patterns.map { NamePattern($0.description) }
    (self.byName, self.byEnds) = (byName, byEnds)
    lengths = Array(Set(byEnds.keys.map { Lengths(prefix: $0.prefix.count, suffix: $0.suffix.count) }))
  }

  /// The index of the first pattern that matches; nil if none does.
  package func first(matching name: StreamName) -> Int? {
    var found = byName[name]
    guard !lengths.isEmpty else { return found }
    let letters = Array(name.description.utf8)
    for length in lengths where length.prefix + length.suffix <= letters.count {
      let ends = Ends(prefix: letters.prefix(length.prefix), suffix: letters.suffix(length.suffix))
      for index in byEnds[ends] ?? [] {
        if let found, found < index { break }
        if patterns[index].matches(name) {
          found = index
          break
        }
      }
    }
    return found
  }
}

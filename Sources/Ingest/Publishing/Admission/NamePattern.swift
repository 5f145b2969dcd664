/// A pattern of stream names, in which each `*` stands for any letters or none.
package struct NamePattern: Sendable, Hashable {
  package let text: String

  package init(_ text: String) { self.text = text }

  package func matches(_ name: StreamName) -> Bool {
    let pieces = text.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false)
    guard let first = pieces.first, let last = pieces.last else { return false }
    var rest = Array(name.description.utf8)[...]
    guard pieces.count > 1 else { return rest.elementsEqual(first) }
    guard rest.count >= first.count + last.count, rest.starts(with: first), rest.suffix(last.count).elementsEqual(last)
    else { return false }
    rest = rest.dropFirst(first.count).dropLast(last.count)
    for piece in pieces.dropFirst().dropLast() where !piece.isEmpty {
      // The first place is the best: what follows has the most room.
      guard let end = Self.end(of: Array(piece), in: rest) else { return false }
      rest = rest[end...]
    }
    return true
  }

  /// The index behind the first occurrence of `piece`; nil without one. Names have at most 64 letters.
  private static func end(of piece: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
    guard bytes.count >= piece.count else { return nil }
    return (bytes.startIndex...(bytes.endIndex - piece.count)).first { bytes[$0...].starts(with: piece) }
      .map { $0 + piece.count }
  }
}

internal import Basics
internal import Ingest

/// A stream's name, or a pattern of names, in which each `*` stands for any letters or none.
struct StreamPattern: Sendable, Hashable, CustomStringConvertible {
  let description: String

  /// All streams.
  static let all = StreamPattern(text: "*")

  private init(text: String) { description = text }

  init(_ name: StreamName) { description = name.description }

  init(parsing text: String) throws(ValueError) {
    let letters = text.replacing("*", with: "")
    let isPossible = letters.isEmpty ? text == "*" : StreamName(letters) != nil || StreamName("a" + letters) != nil
    guard isPossible, text.first == "*" || StreamName(letters) != nil else {
      throw ValueError(
        "that is neither a stream's name nor a pattern", advice: "write a name, cam-* or \"*\"; \(StreamName.grammar)")
    }
    description = text
  }

  /// The name, when it is no pattern.
  var name: StreamName? { StreamName(description) }

  func matches(_ name: StreamName) -> Bool {
    let pieces = description.utf8.split(separator: UInt8(ascii: "*"), omittingEmptySubsequences: false)
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

  /// Whether it is more specific than another: a name before patterns, then by letters other than `*`, then by fewer `*`.
  func isMoreSpecific(than other: StreamPattern) -> Bool { rank > other.rank }

  private var rank: (Int, Int, Int) {
    let stars = description.utf8.count { $0 == UInt8(ascii: "*") }
    return (stars == 0 ? 1 : 0, description.utf8.count - stars, -stars)
  }
}

/// File names of media below `/live/{stream}/{epoch}/{rendition}/`.
package enum MediaName {
  package static let playlist = "index.m3u8"
  package static let keyFrames = "iframes.m3u8"
  /// The playlist of the whole programme.
  package static let programme = "dvr.m3u8"
  /// The prefix before the time in names that DASH addresses by `$Time$`. Times are ticks of the timescale in the init segment,
  /// so the prefix contains its version: with another timescale, the same number may recur.
  package static func timePrefix(initVersion: Int) -> String { "t\(initVersion)-" }

  package static func initSegment(_ version: Int) -> String { "init-\(version).mp4" }
  package static func segment(at time: Int64, initVersion: Int) -> String {
    "\(timePrefix(initVersion: initVersion))\(time).m4s"
  }
  package static func segment(_ sequenceNumber: Int) -> String { "\(sequenceNumber)\(segmentEnding)" }
  static let segmentEnding: StaticString = ".m4s"
  /// A segment after its init segment, in one file.
  static func playable(_ sequenceNumber: Int) -> String { "\(sequenceNumber).mp4" }
  package static func part(_ position: PartPosition) -> String { "\(position.segment).\(position.part).m4s" }
  /// The first part of a segment with a new init segment. Playlists may have hinted at the usual name before the change was
  /// known, and players would combine it with the init segment that they have.
  static func firstPart(ofSegment number: Int, initVersion: Int) -> String { "\(number).0-\(initVersion).m4s" }

  package enum Asked: Equatable {
    case playlist
    /// The I-frame playlist.
    case keyFrames
    /// The playlist of the whole programme.
    case programme
    case initSegment(Int)
    /// By media sequence number.
    case segment(Int)
    /// By the earliest presentation time of the rendition's track, in its ticks.
    case segmentAt(Int64, initVersion: Int)
    case part(PartPosition)
    case firstPart(ofSegment: Int, initVersion: Int)
    /// Init segment and segment in one file, by media sequence number.
    case playable(Int)
  }

  /// The item with this name; nil for any other name. Numbers are decimals without leading zeros, so that each item has one
  /// URL.
  package static func parse(_ name: String) -> Asked? {
    if name == playlist { return .playlist }
    if name == keyFrames { return .keyFrames }
    if name == programme { return .programme }
    if name.hasPrefix("init-"), name.hasSuffix(".mp4") {
      return number(name.dropFirst(5).dropLast(4)).map { .initSegment($0) }
    }
    if name.hasSuffix(".mp4") { return number(name.dropLast(4)).map { .playable($0) } }
    guard name.hasSuffix(".m4s") else { return nil }
    let stem = name.dropLast(4)
    if stem.hasPrefix("t") {
      guard let dash = stem.firstIndex(of: "-"), let version = number(stem[..<dash].dropFirst()),
        let time = countingFromZero(stem[stem.index(after: dash)...])
      else { return nil }
      return .segmentAt(Int64(time), initVersion: version)
    }
    guard let dot = stem.firstIndex(of: ".") else { return number(stem).map { .segment($0) } }
    guard let segment = number(stem[..<dot]) else { return nil }
    let place = stem[stem.index(after: dot)...]
    if place.hasPrefix("0-") {
      return number(place.dropFirst(2)).map { .firstPart(ofSegment: segment, initVersion: $0) }
    }
    guard let part = countingFromZero(place) else { return nil }
    return .part(PartPosition(segment: segment, part: part))
  }

  private static func countingFromZero(_ text: Substring) -> Int? {
    text == "0" ? 0 : number(text)
  }

  private static func number(_ text: Substring) -> Int? {
    guard (1...15).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }), text.first != "0"
    else { return nil }
    return Int(text)
  }
}

internal import Control
package import FMP4
package import Publishing

/// The cues of SCTE 35 that a stream has carried since it was created.
package struct StreamCues: Sendable {
  /// The newest ones that are kept.
  static let kept = 8
  /// Bytes of a section that is told. Of a longer one the fields alone are told.
  static let sectionBytes = 2048
  /// Sections by which a repetition is known.
  private static let remembered = 16

  /// A cue with its place on the epoch's timeline.
  package struct Told: Sendable, Hashable {
    package var cue: StreamCue
    package var epoch: String
    /// The time of day that the cue is for; nil before the stream has a clock.
    package var wall: WallTime?
  }

  /// All that came, with repetitions and fillers.
  package private(set) var count = 0
  /// Sections that came again unchanged: senders repeat each cue.
  package private(set) var repeated = 0
  /// Cues that announce nothing.
  package private(set) var fillers = 0
  /// Oldest first.
  package private(set) var newest: [Told] = []
  private var sections: [[UInt8]] = []

  /// Takes a cue. False if it tells nothing new.
  mutating func add(_ told: Told) -> Bool {
    count &+= 1
    if told.cue.command.isFiller {
      fillers &+= 1
      return false
    }
    if sections.contains(told.cue.section) {
      repeated &+= 1
      return false
    }
    sections = sections.suffix(Self.remembered - 1) + [told.cue.section]
    newest = newest.suffix(Self.kept - 1) + [told]
    return true
  }

  /// The next publication may send the same sections for other times.
  mutating func beginPublication() { sections = [] }
}

extension StreamCue {
  /// In base 64; nil if it is longer than what is told.
  package var sectionText: String? { section.count <= StreamCues.sectionBytes ? Base64.encode(section) : nil }

  /// Whether it is for the moment in which it came.
  package var isImmediate: Bool { presentation == nil }
}

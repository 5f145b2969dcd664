package import Base
package import Control
package import Publishing
package import Recording
package import Streams

/// The settings of one stream.
package struct StreamProfile: Sendable {
  package var settings: StreamSettings
  package var recording: RecordingPolicy
  package var srt: SRTSettings
  package var viewers: ViewersRule
}

/// The settings of all streams: those that hold for all, and those of names and patterns.
package struct StreamProfiles: Sendable {
  /// For streams without settings of their own.
  let standard: StreamProfile
  /// The most specific first.
  private let entries: [(pattern: StreamPattern, profile: StreamProfile)]
  /// Finds among them: each request asks for the profile of its stream.
  private let index: StreamPatternIndex

  /// Some stream is not open to every viewer.
  package let hasViewersRules: Bool

  /// Reads and checks the settings of every entry, so that a mistake shows at start and not with a publisher.
  package init(loading given: SettingSources, publicURL: PublicURL?) throws(ConfigurationError) {
    func profile(_ given: SettingSources) throws(ConfigurationError) -> StreamProfile {
      StreamProfile(
        settings: try StreamOptions().settings(given, publicURL: publicURL),
        recording: try RecordingOptions().policy(given), srt: try SRTOptions().settings(given),
        viewers: try given[StreamOptions().viewers])
    }
    standard = try profile(given)
    if case .stream? = standard.settings.fallback {
      throw given.error(
        StreamOptions().fallback, "one stream cannot be the fallback of all, and so of itself",
        "set it below streams.NAME")
    }
    var entries: [(StreamPattern, StreamProfile)] = []
    for (pattern, sources) in try given.ofStreams {
      var profile = try profile(sources)
      profile.settings.isOfOneName = pattern.name != nil
      if case .stream(let other)? = profile.settings.fallback, pattern.matches(other) {
        throw sources.error(
          StreamOptions().fallback, "\(other) would be its own fallback",
          "name another stream, or use test or file:PATH")
      }
      entries.append((pattern, profile))
    }
    self.entries = entries
    index = StreamPatternIndex(entries.map(\.0))
    hasViewersRules = ([standard] + entries.map(\.1)).contains { $0.viewers != .open }
  }

  package subscript(name: StreamName) -> StreamProfile {
    index.first(matching: name).map { entries[$0].profile } ?? standard
  }

  /// The profiles by pattern, the most specific first, and that of all others.
  package var byPattern: [(pattern: StreamPattern, profile: StreamProfile)] { entries + [(.all, standard)] }

  /// The names with settings of their own.
  package var names: [StreamName] { entries.compactMap(\.pattern.name) }

  /// The standard profile, and all others.
  package var all: [StreamProfile] { [standard] + entries.map(\.profile) }
}

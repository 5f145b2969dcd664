internal import Control

/// What differs between two configurations, by the places of the settings.
package struct SettingChanges: Sendable, Hashable {
  /// `limits.viewers`, `streams.cam-*.partDuration`; sorted.
  package private(set) var places: [SettingEffect: [String]] = [:]

  var isEmpty: Bool { places.isEmpty }

  package init(from old: SettingSources, to new: SettingSources) throws(ConfigurationError) {
    add(Self.differing(ServerOptions.all, old, new) { $0.path?.description ?? $0.name.flag })
    let (before, after) = (try Self.byPattern(old), try Self.byPattern(new))
    let inStreams = ServerOptions.all.filter { $0.path?.isOfStreams ?? false }
    for pattern in Set(before.keys).union(after.keys) {
      let found = Self.differing(inStreams, before[pattern] ?? old, after[pattern] ?? new) {
        "\(SettingPath.streams).\(pattern).\($0.path?.withinStream ?? $0.name.text)"
      }
      // What differs for all streams stands there already.
      add(found.filter { found in !(places[found.0] ?? []).contains(Self.ofAll(found.1, pattern)) })
    }
    if old.file?.keys.definition ?? [] != new.file?.keys.definition ?? [] { add([(.now, KeyReading.key)]) }
    let (hooksBefore, hooksAfter) = (old.file?.hooks.hooks ?? [], new.file?.hooks.hooks ?? [])
    if hooksBefore.map(\.definition) != hooksAfter.map(\.definition) { add([(.now, HookReading.key)]) }
    for effect in places.keys { places[effect]?.sort() }
  }

  private static func ofAll(_ place: String, _ pattern: StreamPattern) -> String {
    place.replacing("\(SettingPath.streams).\(pattern).", with: "\(SettingPath.streams).\(StreamPattern.all).")
  }

  private mutating func add(_ found: [(SettingEffect, String)]) {
    for (effect, place) in found { places[effect, default: []].append(place) }
  }

  private static func byPattern(
    _ sources: SettingSources
  ) throws(ConfigurationError) -> [StreamPattern: SettingSources] {
    Dictionary(try sources.ofStreams.map { ($0.pattern, $0.sources) }) { first, _ in first }
  }

  private static func differing(
    _ settings: [any SettingDeclaration], _ old: SettingSources, _ new: SettingSources,
    _ place: (any SettingDeclaration) -> String
  ) -> [(SettingEffect, String)] {
    settings.filter { old.texts(of: $0).map(\.text) != new.texts(of: $0).map(\.text) }.map { ($0.effect, place($0)) }
  }
}

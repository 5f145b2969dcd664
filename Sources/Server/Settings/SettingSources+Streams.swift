package import Base
package import Control
package import Publishing

/// The configuration file, and settings that streams have of their own.
extension SettingSources {
  /// The same sources with the configuration file that they name, if they name one.
  package func readingFile() throws(ConfigurationError) -> SettingSources {
    guard let given = texts(of: FileOptions().config).last else { return self }
    var sources = SettingSources(
      flags: flags, environment: environment, file: try ConfigFile.load(given), defaults: defaults)
    sources.setByAPI = setByAPI
    return sources
  }

  /// The same sources with what was set over the API. What this version does not understand is left out, with the reason. Its
  /// stream is then for viewers with a token, where the text may have said so.
  package func taking(
    _ texts: [StreamName: String], publicURL: PublicURL?
  ) -> (sources: SettingSources, leftOut: [(stream: StreamName, error: ConfigurationError)]) {
    var taken = self
    var leftOut: [(StreamName, ConfigurationError)] = []
    for (stream, text) in texts.sorted(by: { $0.key < $1.key }) {
      do throws(ConfigurationError) {
        var next = taken
        next.setByAPI[stream] = try ConfigFile.texts(of: stream, setByAPI: text)
        _ = try StreamProfiles(loading: next, publicURL: publicURL)
        taken = next
      } catch {
        leftOut.append((stream, error))
        if text.contains("token") { taken.guardViewers(of: stream, publicURL: publicURL) }
      }
    }
    return (taken, leftOut)
  }

  /// Only viewers with a token may watch the stream, of whose settings nothing else is known.
  package mutating func guardViewers(of stream: StreamName, publicURL: PublicURL?) {
    var next = self
    next.setByAPI[stream] = try? ConfigFile.texts(of: stream, setByAPI: #"{"viewers":"token"}"#)
    if (try? StreamProfiles(loading: next, publicURL: publicURL)) != nil { self = next }
  }

  /// The names and patterns with settings of their own, the most specific first, each with the sources of its settings. Of the
  /// entries that match a name, only the most specific counts, over what holds for all.
  package var ofStreams: [(pattern: StreamPattern, sources: SettingSources)] {
    get throws(ConfigurationError) {
      let named = try textsByName
      let own = Set(named.keys).union(setByAPI.keys)
      let names = own.sorted().map { name in
        var sources = self
        let entry = file?.entries.first { $0.pattern.matches(name) }
        sources.own = (entry?.texts ?? [:]).merging(setByAPI[name] ?? [:]) { $1 }.merging(named[name] ?? [:]) { $1 }
        return (pattern: StreamPattern(name), sources: sources)
      }
      let entries = (file?.entries ?? []).filter { entry in entry.pattern.name.map { !own.contains($0) } ?? true }
      return names
        + entries.map { entry in
          var sources = self
          sources.own = entry.texts
          return (entry.pattern, sources)
        }
    }
  }

  /// The texts of flags and variables that are for one stream, without the name.
  private var textsByName: [StreamName: [SettingName: [GivenText]]] {
    get throws(ConfigurationError) {
      var named: [StreamName: [SettingName: [GivenText]]] = [:]
      for setting in ServerOptions.all {
        for given in allTexts(of: setting) where given.mayName {
          guard let (stream, rest) = try given.read(setting.named) else { continue }
          named[stream, default: [:]][setting.name, default: []].append(given.with(text: rest))
        }
      }
      return named
    }
  }
}

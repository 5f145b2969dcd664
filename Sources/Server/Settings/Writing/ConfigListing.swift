internal import Base
internal import Control
package import Publishing

/// What holds, and where each value comes from: a configuration file with notes. Keys and tokens are left out.
package struct ConfigListing {
  package let text: String

  /// - Parameter stream: what holds for this stream; nil for the server and all streams.
  package init(_ sources: SettingSources, stream: StreamName? = nil) throws(ConfigurationError) {
    var writer = ConfigWriter()
    func write(_ sources: SettingSources) -> (inout ConfigWriter, any SettingDeclaration, Int) -> Void {
      { writer, setting, depth in
        let given = sources.texts(of: setting)
        guard let first = given.first else { return }
        // A comment: what is shown may be saved as a file, and must not become a key there.
        if setting.isSecret, let key = setting.path?.keys.last {
          return writer.addLine("# \(key): \(given.count) given, not shown  # \(first.origin)", depth)
        }
        writer.add(
          setting, ConfigWriter.Value(texts: given.map(\.text), note: first.origin.description), depth: depth)
      }
    }
    guard let stream else {
      writer.add(.root, depth: 0, write: write(sources))
      for hook in sources.file?.hooks.hooks ?? [] {
        writer.addLine("# hook \(hook.name): \(LogText.escaped(hook.target))", 0)
      }
      for key in sources.file?.keys.keys ?? [] { writer.addLine("# key \(key.grant.name)", 0) }
      for (stream, texts) in sources.setByAPI.sorted(by: { $0.key < $1.key }) where !texts.isEmpty {
        let names = ServerOptions.all.filter { texts[$0.name] != nil }.compactMap { $0.path?.withinStream }
        writer.addLine("# stream \(stream), over the API: \(names.joined(separator: ", "))", 0)
      }
      text = writer.text
      return
    }
    let entry = try sources.ofStreams.first { $0.pattern.matches(stream) }
    writer.addLine("\(SettingPath.streams):", 0)
    writer.addLine("\(ConfigWriter.quoted(stream.description)):", 1)
    if let entry, entry.pattern.name == nil { writer.addLine("# As \(entry.pattern).", 2) }
    writer.add(.stream, depth: 2, write: write(entry?.sources ?? sources))
    text = writer.text
  }
}

extension GivenText.Origin: CustomStringConvertible {
  package var description: String {
    switch self {
    case .flag(let name): name.flag
    case .variable(let name): name.variable
    case .file(let place, _, _): place.description
    case .api: "API"
    case .standard: "default"
    }
  }
}

/// A configuration file in which every setting stands with its default, as a comment.
package enum ConfigSample {
  package static var text: String {
    var writer = ConfigWriter()
    for line in head.split(separator: "\n", omittingEmptySubsequences: false) {
      writer.addLine(line.isEmpty ? "#" : "# \(line)", 0)
    }
    writer.add(.root, depth: 0) { writer, setting, depth in
      writer.addLine("# \(setting.summary)", depth)
      var line = ConfigWriter()
      line.add(setting, value(of: setting), depth: 0)
      for part in line.text.split(separator: "\n") { writer.addLine("#\(part)", depth) }
    }
    return writer.text + tail
  }

  /// The default, or the form of a value.
  private static func value(of setting: any SettingDeclaration) -> ConfigWriter.Value {
    if let standard = setting.standard { return ConfigWriter.Value(texts: [standard]) }
    switch setting.shape {
    case .yesOrNo: return ConfigWriter.Value(texts: ["0"])
    case .byName: return ConfigWriter.Value(texts: ["demo=test"])
    case .one, .list, .joined:
      let form = (setting.form ?? "value").replacing("[name=]", with: "").uppercased()
      return ConfigWriter.Value(texts: [form], note: "not set")
    }
  }

  private static let head = """
    The configuration of weir. Every setting stands here with its default; take the # away from what you change.
    A flag or a variable (--http, WEIR_HTTP) beats this file, and weir tells which line has no effect.
    What is said of one name or pattern beats what is said of all streams ("*").
    weir config check FILE finds mistakes; weir config show prints what holds.
    """

  private static let tail = """
      # Settings of some streams: of a name, or of a pattern. The most specific entry that matches counts.
      #cam-*:
      #  record: {mode: manual}
      #cam-1:
      #  ladder: [720p@3M, 360p@800k]
    # Keys with names, for publishers, viewers and administrators. sha256 is that of the key's text.
    #keys:
    #  - name: laptop
    #    sha256: 1111111111111111111111111111111111111111111111111111111111111111
    #    publish: [cam-*]
    #    expiresAt: 2030-01-31T00:00:00Z
    #  - name: console
    #    sha256: 0000000000000000000000000000000000000000000000000000000000000000
    #    scope: operate
    # Where events are told: to a web server (Standard Webhooks), or to a program.
    #hooks:
    #  - on: [stream.started, stream.ended]
    #    streams: cam-*
    #    url: https://example.com/weir
    #    secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
    #  - on: recording.stored
    #    run: [/usr/local/bin/archive, "{path}"]

    """
}

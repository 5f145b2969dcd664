package import Base
package import Publishing
package import Streams

/// A page of one stream.
enum StreamPage: String, Sendable {
  case watch
  /// The player alone, which other sites may put in a frame.
  case embed
}

/// What differs in the head of a page from stream to stream.
struct PageHead: Sendable, Hashable {
  /// Markup in place of the page's title; nil to leave it.
  let tags: String?
  /// Who may embed the page, as in the directive frame-ancestors.
  let frameAncestors: String
}

/// What the pages of a stream tell to those who link to them: title, description and picture (Open Graph, oEmbed discovery).
/// Absolute addresses need `--public-url`; they never have a token.
package struct PageSharing: Sendable {
  /// The mark in the pages that the tags replace.
  static let mark = "<title>weir</title>"
  static let onlyThisServer = "'self'"

  let publicURL: PublicURL?
  let settings: @Sendable (StreamName) -> StreamSettings
  /// The origins whose pages may embed the player; `*` stands for all.
  let embedders: @Sendable () -> [String]

  package init(
    publicURL: PublicURL?, settings: @escaping @Sendable (StreamName) -> StreamSettings,
    embedders: @escaping @Sendable () -> [String]
  ) {
    (self.publicURL, self.settings, self.embedders) = (publicURL, settings, embedders)
  }

  var frameAncestors: String {
    let origins = embedders()
    return origins.contains("*") ? "*" : ([Self.onlyThisServer] + origins).joined(separator: " ")
  }

  /// `isGuarded`: its media are not for everybody, so no picture is named.
  func head(of page: StreamPage, of name: StreamName, isGuarded: Bool) -> PageHead {
    let settings = self.settings(name)
    let title = MarkupText.escaped(settings.title ?? "\(name)")
    let description = MarkupText.escaped(settings.description ?? "\(name), live")
    var lines = [
      "<title>\(title) · weir</title>", meta("name", "description", description), property("site_name", "weir"),
      property("type", "video.other"), property("title", title), property("description", description),
    ]
    if let publicURL {
      let watch = "\(publicURL)/watch/\(name)"
      lines += [property("url", watch), #"<link rel="canonical" href="\#(watch)">"#]
      if !isGuarded { lines += media(name, publicURL, title: title) }
    }
    return PageHead(
      tags: lines.joined(separator: "\n  "), frameAncestors: page == .embed ? frameAncestors : Self.onlyThisServer)
  }

  /// The picture, the player and where oEmbed is asked.
  private func media(_ name: StreamName, _ publicURL: PublicURL, title: String) -> [String] {
    let (player, picture) = ("\(publicURL)/embed/\(name)", "\(publicURL)/live/\(name)/thumbnail.jpg")
    // Of the watch page's address only these two characters mean something within a query.
    let watch = "\(publicURL)/watch/\(name)".replacing(":", with: "%3A").replacing("/", with: "%2F")
    let ask = "\(publicURL)/api/v1/oembed?url=\(watch)&amp;format=json"
    return [
      property("image", picture), property("image:alt", title), property("video", player),
      property("video:type", "text/html"), property("video:width", "\(OEmbedAPI.width)"),
      property("video:height", "\(OEmbedAPI.height)"), meta("name", "twitter:card", "summary_large_image"),
      #"<link rel="alternate" type="application/json+oembed" href="\#(ask)" title="\#(title)">"#,
    ]
  }

  private func property(_ name: String, _ content: String) -> String { meta("property", "og:\(name)", content) }

  private func meta(_ kind: String, _ name: String, _ content: String) -> String {
    #"<meta \#(kind)="\#(name)" content="\#(content)">"#
  }
}

internal import Answers
package import Base
internal import Delivery
internal import HTTP
package import Publishing
package import Streams

/// `/api/v1/oembed`: how a page shows the player for an address of this server (oEmbed 1.0). The address is parsed and never
/// requested. What is given has no token.
package struct OEmbedAPI: Sendable {
  /// The size of the player where the asker sets no limit, in pixels.
  static let width = 1280
  static let height = 720
  /// The longest address that is looked at, in bytes.
  static let longestAddress = 2048
  /// The largest limit of a side that is understood.
  static let largestSide = 100_000

  let publicURL: PublicURL?
  let settings: @Sendable (StreamName) -> StreamSettings

  package init(publicURL: PublicURL?, settings: @escaping @Sendable (StreamName) -> StreamSettings) {
    (self.publicURL, self.settings) = (publicURL, settings)
  }

  func answer(_ request: APIRequest) -> HTTPAnswer {
    let query = request.http
    guard (query.query("format") ?? "json") == "json" else {
      return refusal(.oEmbedFormat, "Only format=json is given.")
    }
    guard let publicURL else {
      return refusal(
        .notOurs, "The server does not know by which address others reach it.", help: "Start it with --public-url.")
    }
    guard let name = stream(in: query.query("url") ?? "", of: publicURL) else {
      return refusal(
        .notOurs, "That is no page of a stream of this server.", help: "Give \(publicURL)/watch/NAME as url.")
    }
    guard request.viewer.maySee(name) else {
      return refusal(.viewerNotAllowed, "Only viewers with a token may see \"\(name)\".")
    }
    guard let widest = side("maxwidth", query), let highest = side("maxheight", query) else {
      return refusal(
        .malformedQuery, "maxwidth and maxheight are whole numbers of 1 to \(Self.largestSide).")
    }
    let (width, height) = Self.size(widest: widest, highest: highest)
    return .now(
      .json(
        OEmbedAnswer(
          name, settings(name), publicURL, width: width, height: height,
          isGuarded: request.viewer.isGuarded(name))))
  }

  private func refusal(_ kind: ProblemKind, _ detail: String, help: String? = nil) -> HTTPAnswer {
    .now(Problem(kind, detail, help: help).response)
  }

  /// The stream of an address of its watch page or its player; nil for any other address. A token in it is passed over.
  private func stream(in address: String, of publicURL: PublicURL) -> StreamName? {
    let origin = publicURL.description
    guard address.utf8.count <= Self.longestAddress, address.lowercased().hasPrefix(origin.lowercased() + "/") else {
      return nil
    }
    var path = address.dropFirst(origin.count).split(separator: "?", omittingEmptySubsequences: false)[0]
      .split(separator: "#", omittingEmptySubsequences: false)[0]
      .split(separator: "/", omittingEmptySubsequences: true)[...]
    if path.first?.first == "~" { path = path.dropFirst() }
    guard path.count == 2, let page = path.first, ["watch", "embed"].contains(page) else { return nil }
    return path.last.flatMap { StreamName(String($0)) }
  }

  /// A limit of the query; nil for one that is no number.
  private func side(_ name: String, _ query: HTTPRequest) -> Int? {
    guard let text = query.query(name) else { return Self.largestSide }
    return Int(text).flatMap { (1...Self.largestSide).contains($0) ? $0 : nil }
  }

  /// The largest size of 16:9 within the limits.
  private static func size(widest: Int, highest: Int) -> (width: Int, height: Int) {
    let wide = min(width, widest)
    let high = max(1, wide * 9 / 16)
    return high <= highest ? (wide, high) : (max(1, highest * 16 / 9), highest)
  }
}

/// oEmbed 1.0 §2.3.4.2: a response of type video.
struct OEmbedAnswer: APIObject {
  let version: String
  let type: String
  let title: String
  let providerName: String
  let providerURL: String
  let cacheAge: Int
  let html: String
  let width: Int
  let height: Int
  let thumbnailURL: String?
  let thumbnailWidth: Int?
  let thumbnailHeight: Int?

  enum CodingKeys: String, CodingKey {
    case version, type, title, html, width, height
    case providerName = "provider_name"
    case providerURL = "provider_url"
    case cacheAge = "cache_age"
    case thumbnailURL = "thumbnail_url"
    case thumbnailWidth = "thumbnail_width"
    case thumbnailHeight = "thumbnail_height"
  }

  static let notes: [String: FieldNote] = [
    "html": "Markup with the player.", "cacheAge": "Seconds for which it may be kept.",
  ]

  init(
    _ name: StreamName, _ settings: StreamSettings, _ publicURL: PublicURL, width: Int, height: Int, isGuarded: Bool
  ) {
    (version, type, providerName, providerURL, cacheAge) = ("1.0", "video", "weir", publicURL.description, 300)
    title = MarkupText.plain(settings.title ?? "\(name)")
    (self.width, self.height) = (width, height)
    let label = MarkupText.escaped(title)
    html =
      #"<iframe src="\#(publicURL)/embed/\#(name)" width="\#(width)" height="\#(height)" title="\#(label)" "#
      + #"style="border:0" allow="autoplay; fullscreen; picture-in-picture" allowfullscreen></iframe>"#
    thumbnailURL = isGuarded ? nil : "\(publicURL)/live/\(name)/thumbnail.jpg"
    (thumbnailWidth, thumbnailHeight) = isGuarded ? (nil, nil) : (640, 360)
  }
}

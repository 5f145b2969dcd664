internal import Base
internal import HTTP
internal import Publishing
internal import Streams

/// Access, limits and trusted proxies of HTTP.
struct HTTPOptions: TitledSettings {
  static let title = "Viewers and the API"

  let maxViewers = Setting(
    "max-viewers", at: "limits.viewers", .count(1...1_000_000), default: "10000",
    "More viewers get 503 with Retry-After.")
  let pollLimit = Setting(
    "poll-limit", at: "limits.polls", .count(0...1_000_000), default: "100",
    "Requests a second on one connection for one unchanged playlist; more get 429; 0: no limit.")
  let trustedProxy = Setting(
    each: "trusted-proxy", at: "http.trustedProxies", SettingText("CIDR", AddressRange.parse),
    "Proxies that tell whose requests they pass on (X-Forwarded-For; PROXY protocol of RTMP).")
  let allowedHost = Setting(
    each: "allowed-host", at: "http.allowedHosts", SettingText("name", AllowedHosts.parse),
    "Further names of this server for pages, API and publishers: live.example.org, *.example.org.")
  let maxConnectionsPerAddress = Setting(
    "max-connections-per-address", at: "limits.connectionsPerAddress", .count(1...1_000_000),
    "Connections of one address, of HTTP and of RTMP each; more are closed.")
  let cors = Setting(
    each: "cors", at: "http.cors", SettingText("origin|*", WebOrigin.parse),
    "Origins whose pages may read recordings and the API, and, if named, publish by WHIP with a key; streams any may read."
  )
  let embedFrom = Setting(
    each: "embed-from", at: "embed.from", SettingText("origin|*", WebOrigin.parse),
    "Origins whose pages may embed the player.")
  let playerDefault = Setting<PlayerChoice>(
    "player-default", at: "player.default", .word, default: "mse",
    "How pages play: by stream.mp4, or by HLS, which caches can deliver.")
  let adminToken = Setting(
    "admin-token", at: "admin.token", SettingText("token", Secret.parseToken), isSecret: true,
    "Token for requests that change something; without it, all of them are refused.")
  let viewersRecheck = Setting(
    "viewers-recheck", at: "viewers.recheck", .duration(.seconds(1) ... .seconds(3600)), default: "10s",
    "How long a cache may go by what /api/v1/authorize said of a token.")
  let web = Setting("web", at: "http.web", .folder, "Serve the pages from a folder, to work on them.")

  /// The origins of `--cors` and `--embed-from`.
  func crossOrigin(_ given: SettingSources) throws(ConfigurationError) -> CrossOrigin {
    let (origins, embedders) = try (given[cors], given[embedFrom])
    for (setting, list) in [(cors, origins), (embedFrom, embedders)] where list.count > WebOrigin.most {
      throw given.error(setting, "\(list.count) origins are too many", "list at most \(WebOrigin.most), or write *")
    }
    return CrossOrigin(origins: origins, embedders: embedders)
  }

  func limits(_ given: SettingSources) throws(ConfigurationError) -> HTTPLimits {
    var limits = HTTPLimits()
    limits.repeatedPolls = try given[pollLimit]
    limits.connectionsPerAddress = try given[maxConnectionsPerAddress]
    // A player has one connection for playlists and one for media.
    limits.connections = max(limits.connections, 2 * (try given[maxViewers]))
    return limits
  }
}

extension AddressRange {
  static func parse(_ text: String) throws(ValueError) -> AddressRange {
    guard let range = AddressRange(parsing: text) else {
      throw ValueError(
        "that is neither an address nor a range of addresses", advice: "write 10.0.0.7, 10.0.0.0/8 or 2001:db8::/32")
    }
    return range
  }
}

extension Secret {
  fileprivate static func parseToken(_ text: String) throws(ValueError) -> Secret {
    guard !text.isEmpty else {
      throw ValueError(
        "the token is empty", advice: "give a token, or leave the setting out to allow no changes over HTTP")
    }
    return Secret(text)
  }
}

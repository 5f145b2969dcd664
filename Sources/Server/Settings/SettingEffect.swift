/// When a changed setting takes effect in a running server.
package enum SettingEffect: String, Sendable, Hashable {
  /// With the reload.
  case now
  /// With the next epoch of a stream, or its next recording: what viewers were told stays true.
  case nextEpoch = "next epoch"
  /// When weir starts again.
  case restart
}

extension SettingDeclaration {
  package var effect: SettingEffect {
    switch name {
    case "publish-key", "admin-token", "max-viewers", "poll-limit", "max-connections-per-address", "cors",
      "embed-from", "allowed-host",
      "max-streams", "max-names", "retain-age", "retain-size", "retain-stream-size", "retain-deleted", "when-full",
      "log-level", "publishers",
      "auth-callback", "auth-callback-timeout", "auth-callback-cache", "auth-callback-otherwise",
      "takeover", "publish-from", "jwt-secret", "jwt-key", "jwt-key-set", "jwt-key-set-staleness", "jwt-issuer",
      "jwt-audience", "jwt-clock-skew", "jwt-without-expiry", "viewers-recheck", "srt", "viewers", "srt-passphrase",
      "srt-latency", "fallback", "fallback-after", "end", "linger", "http", "https", "rtmp", "rtmps":
      .now
    default: path?.isOfStreams ?? false ? .nextEpoch : .restart
    }
  }
}

internal import FMP4

/// A key that was made over the API.
struct KeyAnswer: APIObject {
  let name: String
  let publish: [String]
  let watch: [String]
  let record: [String]
  let scope: String?
  let madeAt: String
  let expiresAt: String?
  let isExpired: Bool
  /// The text of the key: told once, in the answer to the request that makes it.
  let key: String?

  init(_ key: AccessKey, text: String? = nil, now: WallTime) {
    let grant = key.grant
    func patterns(_ action: AccessAction) -> [String] { (grant.streams[action] ?? []).map(\.description) }
    name = grant.name
    (publish, watch, record) = (patterns(.publish), patterns(.watch), patterns(.record))
    scope = grant.scope?.rawValue
    madeAt = JSONText.time(key.madeAt)
    expiresAt = grant.ends.map(JSONText.time)
    isExpired = !grant.holds(at: now)
    self.key = text
  }
}

struct KeysAnswer: APIObject {
  let keys: [KeyAnswer]
}

/// The body of a request that makes a key.
struct KeyRequest: APIObject {
  let name: String
  let publish: [String]?
  let watch: [String]?
  let record: [String]?
  let scope: String?
  /// RFC 3339; never without it.
  let expiresAt: String?
}

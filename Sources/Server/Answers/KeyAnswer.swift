package import Control
package import FMP4

/// A key with a name.
package struct KeyAnswer: APIObject {
  package let name: String
  package let publish: [String]
  package let watch: [String]
  package let record: [String]
  package let scope: String?
  /// `api`, or `file` for the configuration file.
  let from: String
  /// Of a key that was made over the API.
  package let madeAt: String?
  package let expiresAt: String?
  package let isExpired: Bool
  /// The text of the key: told once, in the answer to the request that makes it.
  package let key: String?
  /// In the same answer; nil if the key changes nothing else.
  package let note: String?

  package static let notes: [String: FieldNote] = [
    "note": "What the key changes for others, in words: the first one to publish with makes all publishers need one."
  ]

  package init(_ key: AccessKey, text: String? = nil, note: String? = nil, now: WallTime) {
    let grant = key.grant
    func patterns(_ action: AccessAction) -> [String] { (grant.streams[action] ?? []).map(\.description) }
    name = grant.name
    (publish, watch, record) = (patterns(.publish), patterns(.watch), patterns(.record))
    scope = grant.scope?.rawValue
    from = key.madeAt == nil ? "file" : "api"
    madeAt = key.madeAt.map(JSONText.time)
    expiresAt = grant.ends.map(JSONText.time)
    isExpired = !grant.holds(at: now)
    (self.key, self.note) = (text, note)
  }
}

/// `/api/v1/keys`
package struct KeysAnswer: APIObject, PagedAnswer {
  package private(set) var keys: [KeyAnswer]
  package private(set) var next: String?
  let total: Int

  package static let notes: [String: FieldNote] = [
    "keys": "A page of them, by name.",
    "next": "`after` of the next page; null on the last one.",
    "total": "How many there are in all.",
  ]

  package init(_ page: (keys: [AccessKey], isMore: Bool, total: Int), now: WallTime) {
    keys = page.keys.map { KeyAnswer($0, now: now) }
    next = page.isMore ? page.keys.last?.grant.name : nil
    total = page.total
  }

  package mutating func append(_ page: KeysAnswer) {
    keys += page.keys
    next = page.next
  }
}

/// The body of a request that makes a key.
package struct KeyRequest: APIObject {
  package let name: String
  package let publish: [String]?
  package let watch: [String]?
  package let record: [String]?
  package let scope: String?
  /// RFC 3339; never without it.
  package let expiresAt: String?

  package init(
    name: String, publish: [String]?, watch: [String]?, record: [String]?, scope: String?, expiresAt: String?
  ) {
    (self.name, self.publish, self.watch, self.record, self.scope) = (name, publish, watch, record, scope)
    self.expiresAt = expiresAt
  }
}

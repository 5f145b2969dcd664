package import Publishing

/// The publish keys: of names and patterns, and for all names.
package struct PublishKeys: Sendable {
  private var byPattern: [StreamPattern: [Secret]] = [:]
  private var forAllNames: [Secret] = []

  package init() {}

  /// Without any key, publishing needs none.
  var isEmpty: Bool { byPattern.isEmpty && forAllNames.isEmpty }

  /// All keys with the names that each is for.
  var all: [(names: StreamPattern, key: Secret)] {
    byPattern.flatMap { pattern, keys in keys.map { (pattern, $0) } } + forAllNames.map { (.all, $0) }
  }

  package var hasKeyForAll: Bool { !forAllNames.isEmpty }

  /// The length of the shortest key in bytes; nil without keys.
  package var shortest: Int? { (byPattern.values.flatMap { $0 } + forAllNames).compactMap(\.length).min() }

  /// Adds a key. A name may have several, so that one can be replaced while another is in use.
  ///
  /// - Parameter pattern: the names that the key belongs to.
  package mutating func add(_ key: Secret, for pattern: StreamPattern) {
    if pattern == .all { forAllNames.append(key) } else { byPattern[pattern, default: []].append(key) }
  }

  /// The right that a key gives to a name; nil when the key is not accepted.
  ///
  /// - Parameter key: the publisher's key; nil when it gave none.
  func right(of key: Secret?, to name: StreamName) -> PublishRight? {
    if isEmpty { return .anonymous }
    guard let key else { return nil }
    // All keys are compared, so that the time does not show which one matched.
    let isOwn = byPattern.reduce(false) { found, one in
      let matches = one.value.reduce(false) { found, other in key.matches(other) || found }
      return matches && one.key.matches(name) || found
    }
    let isForAll = forAllNames.reduce(false) { found, other in key.matches(other) || found }
    return isOwn ? .keyOfName : isForAll ? .keyForAllNames : nil
  }
}

/// How well a publisher proved its right to a name. It decides which publishers it can replace.
package enum PublishRight: Sendable, Hashable {
  /// No keys are configured, or the publisher is a source of this server.
  case anonymous
  /// A key for all names.
  case keyForAllNames
  /// A key of this name.
  case keyOfName
}

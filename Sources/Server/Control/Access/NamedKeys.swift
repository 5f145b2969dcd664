internal import Publishing

/// Keys by name and by digest. Names are kept sorted, so that a page of many costs as much as one of few.
struct NamedKeys: Sendable {
  private var byName: [String: AccessKey] = [:]
  private var byDigest: [Secret: String] = [:]
  private(set) var names: [String] = []
  /// How many allow to publish, and how many to administer. Counted, because each request asks.
  private(set) var publishers = 0
  private(set) var administrators = 0

  init() {}

  /// Of several keys with one name, the last counts.
  init(_ keys: [AccessKey]) {
    for key in keys {
      if let former = byName[key.grant.name] { forget(former) }
      note(key)
    }
    names = byName.keys.sorted()
  }

  var count: Int { names.count }

  func key(_ name: String) -> AccessKey? { byName[name] }

  func grant(of secret: Secret) -> AccessGrant? { byDigest[secret].flatMap { byName[$0]?.grant } }

  /// The index of the first name after `name`.
  func place(after name: String?) -> Int {
    guard let name else { return 0 }
    var (low, high) = (0, names.count)
    while low < high {
      let middle = (low + high) / 2
      if names[middle] <= name { low = middle + 1 } else { high = middle }
    }
    return low
  }

  mutating func add(_ key: AccessKey) {
    let name = key.grant.name
    if let former = byName[name] { forget(former) } else { names.insert(name, at: place(after: name)) }
    note(key)
  }

  mutating func remove(_ name: String) -> Bool {
    guard let key = byName[name] else { return false }
    forget(key)
    names.remove(at: place(after: name) - 1)
    return true
  }

  private mutating func note(_ key: AccessKey) {
    byName[key.grant.name] = key
    byDigest[key.secret] = key.grant.name
    count(key.grant, 1)
  }

  private mutating func forget(_ key: AccessKey) {
    byName[key.grant.name] = nil
    if byDigest[key.secret] == key.grant.name { byDigest[key.secret] = nil }
    count(key.grant, -1)
  }

  private mutating func count(_ grant: AccessGrant, _ change: Int) {
    if grant.streams[.publish] != nil { publishers += change }
    if grant.scope != nil || grant.streams[.record] != nil { administrators += change }
  }
}

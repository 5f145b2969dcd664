internal import Publishing
internal import Synchronization

/// The keys with names, in memory: those of the configuration file, and those that were made over the API. Looked up by their
/// digest, so that the time of a look tells nothing about the text of any key.
package final class KeyRing: Sendable {
  private struct State {
    var made = NamedKeys()
    var configured = NamedKeys()
    /// Some key allowed to publish once.
    var hadPublishers = false

    mutating func note() { if made.publishers + configured.publishers > 0 { hadPublishers = true } }
  }

  private let state = Mutex(State())

  package init(_ keys: [AccessKey] = []) {
    for key in keys { _ = add(key) }
  }

  /// All of them, sorted by name.
  var all: [AccessKey] { page(after: nil, limit: .max).keys }

  /// The keys whose names come after `name`, sorted by name. `limit` counts names: a key of the file and one that was made may have
  /// the same one.
  package func page(after name: String?, limit: Int) -> (keys: [AccessKey], isMore: Bool, total: Int) {
    state.withLock { state in
      let (made, configured) = (state.made, state.configured)
      var (first, second) = (made.names[made.place(after: name)...], configured.names[configured.place(after: name)...])
      var keys: [AccessKey] = []
      var names = 0
      while names < limit, let next = [first.first, second.first].compactMap({ $0 }).min() {
        names += 1
        for one in [first.first == next ? made.key(next) : nil, second.first == next ? configured.key(next) : nil] {
          if let one { keys.append(one) }
        }
        if first.first == next { first = first.dropFirst() }
        if second.first == next { second = second.dropFirst() }
      }
      return (keys, !first.isEmpty || !second.isEmpty, made.count + configured.count)
    }
  }

  /// Some key allows to publish.
  var mayPublish: Bool { state.withLock { $0.made.publishers + $0.configured.publishers > 0 } }

  /// Some key allowed to publish since this was made, or since `forgetPublishers`.
  package var hadPublishers: Bool { state.withLock { $0.hadPublishers } }

  package func forgetPublishers() {
    state.withLock { state in
      state.hadPublishers = false
      state.note()
    }
  }

  /// Some key is an administrator's, or allows to record.
  var hasAdministrators: Bool { state.withLock { $0.made.administrators + $0.configured.administrators > 0 } }

  var count: Int { state.withLock { $0.made.count + $0.configured.count } }

  /// A key that was made.
  package subscript(name: String) -> AccessKey? { state.withLock { $0.made.key(name) } }

  /// Whether a key of that name stands in the configuration file.
  package func isConfigured(_ name: String) -> Bool { state.withLock { $0.configured.key(name) != nil } }

  /// What a key allows; nil for an unknown key.
  func grant(of secret: Secret) -> AccessGrant? {
    state.withLock { $0.configured.grant(of: secret) ?? $0.made.grant(of: secret) }
  }

  /// The keys of the configuration file from now on.
  func configure(_ keys: [AccessKey]) {
    let configured = NamedKeys(keys)
    state.withLock { state in
      state.configured = configured
      state.note()
    }
  }

  /// Keys that a former process made, also beside those of the file with their names. For the start: before any is added.
  package func restore(_ keys: [AccessKey]) {
    let made = NamedKeys(keys)
    state.withLock { state in
      state.made = made
      state.note()
    }
  }

  /// Adds a key that was made. False if the name is taken, or there are too many keys.
  package func add(_ key: AccessKey) -> Bool {
    state.withLock { state in
      let name = key.grant.name
      guard state.made.key(name) == nil, state.configured.key(name) == nil, state.made.count < ControlDatabase.keyLimit
      else { return false }
      state.made.add(key)
      state.note()
      return true
    }
  }

  /// Removes a key that was made. False for an unknown name.
  package func remove(_ name: String) -> Bool { state.withLock { $0.made.remove(name) } }
}

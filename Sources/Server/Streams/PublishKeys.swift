internal import Ingest

/// The keys that publishers must give: of single names, and for all names.
struct PublishKeys: Sendable {
  private var byName: [StreamName: [Secret]] = [:]
  private var forAllNames: [Secret] = []

  /// Without any key everybody may publish.
  var isEmpty: Bool { byName.isEmpty && forAllNames.isEmpty }

  /// Bytes of the shortest; nil where there is none.
  var shortest: Int? { (byName.values.flatMap { $0 } + forAllNames).map(\.length).min() }

  /// Adds a key. A name may have several, so that one can be changed while the other is in use.
  ///
  /// - Parameter name: the name that it belongs to; nil for all names.
  mutating func add(_ key: Secret, for name: StreamName?) {
    if let name { byName[name, default: []].append(key) } else { forAllNames.append(key) }
  }

  /// What a key may do with a name; nil where it does not admit to it.
  ///
  /// - Parameter key: what the publisher gave; nil where it gave none.
  func right(of key: Secret?, to name: StreamName) -> PublishRight? {
    if isEmpty { return .unproven }
    guard let key else { return nil }
    // All are compared, so that the time tells nothing of which it was.
    let isOwn = byName[name, default: []].reduce(false) { found, other in key.matches(other) || found }
    let isForAll = forAllNames.reduce(false) { found, other in key.matches(other) || found }
    return isOwn ? .keyOfName : isForAll ? .keyForAllNames : nil
  }
}

/// How well a publisher has shown that a name is its own: decides whom it may take the name from.
enum PublishRight: Sendable, Hashable {
  /// No keys are set, or it is one of the server's own sources.
  case unproven
  /// A key that opens every name.
  case keyForAllNames
  /// A key of this very name.
  case keyOfName
}

package import Base
internal import Glibc
package import Logging
internal import NIOCore
internal import Storage

/// The keys of tokens, and what tokens must state, as configured.
package struct JSONWebTokenSettings: Sendable {
  /// Where a key set comes from.
  package enum KeySet: Sendable, Hashable {
    case file(String)
    case address(JSONWebKeySetAddress)
  }

  /// A shared secret; nil for none.
  package var secret: JSONWebKey?
  /// PEM files of public keys.
  package var keyFiles: [String] = []
  package var keySet: KeySet?
  package var rules = JSONWebTokenRules()
  package var times = JSONWebKeys.Times()

  package init() {}

  /// Whether any token can be accepted.
  package var hasKeys: Bool { secret != nil || !keyFiles.isEmpty || keySet != nil }

  /// The configured keys. Reads the files: for the start and for reloads, on no event loop.
  func localKeys() throws(ValueError) -> [JSONWebKey] {
    var keys = secret.map { [$0] } ?? []
    for path in keyFiles {
      keys += try Self.reading(path) { text throws(ValueError) in
        try JSONWebKeySet.keys(inPEM: String(decoding: text, as: UTF8.self))
      }
    }
    if case .file(let path) = keySet { keys += try Self.reading(path, JSONWebKeySet.keys(in:)) }
    return keys
  }

  package func makeKeys(logger: Logger) throws(ValueError) -> JSONWebKeys {
    guard let address else { return JSONWebKeys(try localKeys(), times: times, logger: logger) }
    return JSONWebKeys(
      try localKeys(), at: address, fetch: JSONWebKeys.fetch(of: address), times: times, logger: logger)
  }

  /// The address of the key set; nil without one.
  var address: JSONWebKeySetAddress? {
    if case .address(let address) = keySet { address } else { nil }
  }

  /// Gets what `tokens` needs to follow these settings: reads the files, and fetches the set at a new address. Where that fails,
  /// nothing changes: without the keys everybody with a token would be cut off. Returns what makes `tokens` follow them.
  package func following(_ tokens: ViewerTokens) async throws(ValueError) -> @Sendable () -> Void {
    let (local, address, times, rules) = (try localKeys(), address, times, rules)
    var fetched: [JSONWebKey]?
    if let address, address != tokens.keys.address {
      fetched = try await address.fetch()
    }
    return { [fetched] in
      tokens.keys.follow(local: local, at: address, fetched: fetched, times: times)
      tokens.replaceRules(by: rules)
    }
  }

  private static func reading(
    _ path: String, _ keys: ([UInt8]) throws(ValueError) -> [JSONWebKey]
  ) throws(ValueError) -> [JSONWebKey] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else {
      throw ValueError(
        "\(LogText.escaped(path)): \(String(cString: strerror(errno)))", advice: "name a file that weir may read")
    }
    defer { close(descriptor) }
    let text = try? File(descriptor).read(at: 0, count: JSONWebKeySet.bytes + 1)
    do throws(ValueError) {
      return try keys(text.map { Array($0.readableBytesView) } ?? [])
    } catch {
      throw ValueError("\(LogText.escaped(path)): \(error.reason)", advice: error.advice)
    }
  }
}

package import FMP4
internal import Publishing

/// What somebody may do with a stream.
package enum AccessAction: String, Sendable, Hashable, CaseIterable {
  /// Publish it.
  case publish
  /// Read its media, playlists, pages and state, live and recorded.
  case watch
  /// Start and stop its recording.
  case record
}

/// What an administrator may do. Each scope includes those before it.
package enum AdminScope: String, Sendable, Hashable, CaseIterable, Comparable {
  /// Read what is not public: devices, sources, refusals, settings, events.
  case read
  /// Also start, stop and change what runs, and delete recordings.
  case operate
  /// Also change keys and settings.
  case admin

  package static func < (a: AdminScope, b: AdminScope) -> Bool { a.rank < b.rank }

  private var rank: Int {
    switch self {
    case .read: 0
    case .operate: 1
    case .admin: 2
    }
  }
}

/// What a credential allows, and until when. A credential is a key, a token, or the answer of a callback.
package struct AccessGrant: Sendable, Equatable {
  /// The name of the key or the subject of the token, for logs, events and the API. Never a secret.
  package var name: String
  /// The streams of each action; an action without streams is not allowed.
  package var streams: [AccessAction: [StreamPattern]] = [:]
  /// Nil for none.
  package var scope: AdminScope?
  /// From then on it holds; nil for always.
  var begins: WallTime?
  /// From then on it holds no longer; nil for never.
  package var ends: WallTime?

  package init(
    name: String, streams: [AccessAction: [StreamPattern]] = [:], scope: AdminScope? = nil, begins: WallTime? = nil,
    ends: WallTime? = nil
  ) {
    (self.name, self.streams, self.scope, self.begins, self.ends) = (name, streams, scope, begins, ends)
  }

  func allows(_ action: AccessAction, of stream: StreamName) -> Bool {
    streams[action]?.contains { $0.matches(stream) } ?? false
  }

  package func holds(at time: WallTime) -> Bool {
    begins.map { $0 <= time } ?? true && ends.map { time < $0 } ?? true
  }
}

/// Why a credential is not accepted. Its text contains nothing of the credential.
package enum CredentialRefusal: Error, Sendable, Hashable {
  /// No key or token was given.
  case missing
  /// It is no known key, or its signature does not match.
  case unknown
  /// It was valid once.
  case expired
  /// It is not valid yet.
  case notYet
  /// It is valid, but not for this action or stream.
  case notForThis
  /// It cannot be read, or breaks a limit. The reason is one line.
  case malformed(String)

  package var description: String {
    switch self {
    case .missing: "there is no key or token"
    case .unknown: "the key or token is unknown"
    case .expired: "the key or token has expired"
    case .notYet: "the key or token is not valid yet"
    case .notForThis: "the key or token is for something else"
    case .malformed(let reason): "the token cannot be used: \(reason)"
    }
  }
}

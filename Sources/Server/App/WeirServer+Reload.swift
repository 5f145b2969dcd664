internal import API
internal import Base
internal import Control
internal import HTTP
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Publishing
internal import Recording
internal import Settings
internal import Streams

/// Where the server listens, and what a reload changes.
extension WeirServer {
  /// Nil without a state folder.
  func openControlDatabase() throws(ConfigurationError) -> ControlDatabase? {
    guard let folder = configuration.stateFolder else { return nil }
    do {
      let database = try ControlDatabase(folder: folder)
      authorizer.keys.restore(try database.keys())
      if try database.isClosed() { authorizer.restoreClosed() }
      authorizer.noteKeys()
      try database.setClosed(authorizer.staysClosed)
      return database
    } catch {
      throw Self.unusable(folder, error)
    }
  }

  private static func unusable(_ folder: String, _ error: any Error) -> ConfigurationError {
    ConfigurationError(
      .configuration,
      "\(LogText.escaped(folder))/\(ControlDatabase.fileName), which has the keys made over the API, cannot"
        + " be used: \(error); put a copy of it back, or move it away and make the keys anew")
  }

  /// The sources with what was set over the API, which holds from now on. What this version does not understand, and rows that
  /// cannot be read, are left out and told. A database that cannot be read at all is an error: without its settings a stream could
  /// be open to everybody.
  func takeSettings(of control: ControlDatabase?) throws(ConfigurationError) -> SettingSources? {
    guard var given = sources else { return nil }
    let kept: ControlDatabase.StreamTexts
    do {
      kept = try control?.settings() ?? ControlDatabase.StreamTexts()
    } catch {
      throw Self.unusable(configuration.stateFolder ?? "", error)
    }
    for name in kept.unreadable {
      logger.error(
        "a row of what was set over the API cannot be read and is left out; the stream is for viewers with a token",
        metadata: ["stream": "\(LogText.escaped(name))"])
      if let stream = StreamName(name) { given.guardViewers(of: stream, publicURL: configuration.publicURL) }
    }
    let (taken, leftOut) = given.taking(kept.texts, publicURL: configuration.publicURL)
    for (stream, error) in leftOut { logger.of(stream).error("what was set over the API is left out: \(error)") }
    given = taken
    if !given.setByAPI.isEmpty {
      profiles.now = try StreamProfiles(loading: given, publicURL: configuration.publicURL)
    }
    return given
  }

  func publisherPlaces(
    _ configuration: ServerConfiguration, _ protocols: [PublisherProtocol], _ certificate: CertificateHolder
  ) -> [(ListeningSocket, PublisherProtocol)] {
    protocols.flatMap { each in
      each.places(configuration).map { place in
        let start: @Sendable () async throws -> SocketAddress = {
          try await bind(place.address, place.setting) {
            try await each.listener.start($0, tls: place.isSecure ? certificate.current?.rtmps : nil)
          }
        }
        let stop: @Sendable (SocketAddress) async -> Void = { await each.listener.stop(at: $0) }
        return (
          ListeningSocket(
            setting: place.setting, address: place.address, isInherited: inherited[place.setting] != nil, start: start,
            stop: stop), each
        )
      }
    }
  }

  func pagePlaces(
    _ configuration: ServerConfiguration, _ http: HTTPListener, _ certificate: CertificateHolder
  ) -> [ListeningSocket] {
    func place(_ setting: SettingName, _ address: ListenAddress, isSecure: Bool) -> ListeningSocket {
      ListeningSocket(setting: setting, address: address, isInherited: inherited[setting] != nil) {
        try await bind(address, setting) {
          try await http.start($0, tls: isSecure ? certificate.current?.https : nil)
        }
      } stop: {
        await http.stop(at: $0)
      }
    }
    return [place("http", configuration.http, isSecure: false)]
      + (configuration.https.map { [place("https", $0, isSecure: true)] } ?? [])
  }

  /// Listens at an address, or on the socket that was passed to this process.
  private func bind(
    _ address: ListenAddress, _ setting: SettingName, _ start: (ListenEndpoint) async throws -> SocketAddress
  ) async throws -> SocketAddress {
    if let socket = inherited[setting] { return try await start(.socket(socket)) }
    return try await address.bind(for: setting) { host, port in
      try await start(.address(try SocketAddress(ipAddress: host, port: port)))
    }
  }

  /// Nil where the configuration cannot be read again.
  func makeReloader(
    _ protocols: [PublisherProtocol], given: SettingSources?, http: HTTPListener, listening: ListeningSockets,
    certificate: CertificateHolder, control: ControlDatabase?, tokens: ViewerTokens
  ) -> SettingsReloader? {
    guard let given else { return nil }
    let parts = SettingsReloader.Parts(
      places: { configuration in
        publisherPlaces(configuration, protocols, certificate).map(\.0)
          + pagePlaces(configuration, http, certificate)
      },
      prepare: { configuration in
        try certificate.prepare(for: configuration, protocols)
        try await checkFallbacks(of: configuration.streams)
        let followTokens = try await prepare(tokens, for: configuration.jwt)
        return {
          followTokens()
          apply(configuration, protocols, http, control)
        }
      }, listening: listening)
    return SettingsReloader(given: given, parts: parts, control: control, events: events, logger: logger)
  }

  private func prepare(
    _ tokens: ViewerTokens, for settings: JSONWebTokenSettings
  ) async throws(ConfigurationError) -> @Sendable () -> Void {
    let follow: @Sendable () -> Void
    do throws(ValueError) {
      follow = try await settings.following(tokens)
    } catch {
      throw Self.keysUnreadable(error)
    }
    return { [authorizer] in
      follow()
      authorizer.tokens.now = settings.hasKeys ? tokens : nil
    }
  }

  static func keysUnreadable(_ error: ValueError) -> ConfigurationError {
    ConfigurationError(.configuration, "keys of tokens: \(error.reason); \(error.advice)")
  }

  /// Makes a configuration hold, but for its listeners.
  private func apply(
    _ configuration: ServerConfiguration, _ protocols: [PublisherProtocol], _ http: HTTPListener,
    _ control: ControlDatabase?
  ) {
    profiles.now = configuration.streams
    streams.open(channels: configuration.streams.names)
    embedFrom.now = configuration.embedFrom
    origins.now = configuration.crossOrigin
    viewersRules.change()
    let wasClosed = authorizer.isClosed
    authorizer.follow(configuration.accessRules)
    if !wasClosed, authorizer.isClosed { ControlAPI.tellClosed(by: nil, key: nil, events, logger) }
    streams.limit(by: configuration.nameLimits)
    viewers.limit = configuration.maxViewers
    http.policy.now = HTTPPolicy(
      configuration.httpLimits, origins: configuration.crossOrigin, hosts: configuration.hosts)
    recheck.now = configuration.recheckSeconds
    for each in protocols {
      each.listener.limit(connectionsPerAddress: configuration.httpLimits.connectionsPerAddress)
    }
    setLogLevel(configuration.logLevel)
    if let recordings {
      NIOSingletons.posixBlockingThreadPool.submit { [waker] _ in
        recordings.follow(configuration.retention)
        waker.wake()
      }
    }
    hooks.follow(configuration.hooks)
    capacity.now = makeCapacity(of: configuration)
    streams.endRevoked()
    noteClosed(control)
  }

  /// Tells when nobody may publish, and keeps that publishers need keys for the next process.
  func noteClosed(_ control: ControlDatabase?) {
    if authorizer.isClosedToAll { logger.warning("\(Authorizer.closedToAll)") }
    NIOSingletons.posixBlockingThreadPool.submit { [authorizer, logger] _ in
      do {
        try control?.setClosed(authorizer.staysClosed)
      } catch {
        logger.error("that publishers need keys cannot be kept for the next start: \(error)")
      }
    }
  }

  /// What this machine allows, as it is configured.
  func makeCapacity(of configuration: ServerConfiguration) -> ServerCapacity {
    ServerCapacity(of: configuration, descriptors, media)
  }
}

extension ServerConfiguration {
  /// Who may what.
  var accessRules: Authorizer.Rules {
    Authorizer.Rules(
      publishKeys: publishKeys, adminToken: adminToken, callback: callback, keys: keys, publishers: publishers)
  }

  /// How long a cache may go by what it was told of a token, in seconds.
  var recheckSeconds: Int64 { viewersRecheck.wholeMilliseconds / 1000 }
}

internal import Answers
package import Base
package import Control
internal import Delivery
internal import FMP4
internal import HTTP
package import Logging
internal import NIOCore
internal import NIOPosix
internal import Publishing
package import Streams

/// `/api/v1/keys…` and settings: what is changed while the server runs, and outlives it.
package struct ControlAPI {
  let authorizer: Authorizer
  let streams: StreamRegistry
  /// Nil without a state folder. Then nothing can be changed, since it would be forgotten.
  let database: ControlDatabase?
  let settings: SettingsHolder
  let events: EventLog?
  let clock: SteadyClock
  let logger: Logger

  package init(
    authorizer: Authorizer, streams: StreamRegistry, database: ControlDatabase?, settings: SettingsHolder,
    events: EventLog?, clock: SteadyClock, logger: Logger
  ) {
    (self.authorizer, self.streams, self.database, self.settings, self.events) = (
      authorizer, streams, database, settings, events
    )
    (self.clock, self.logger) = (clock, logger)
  }

  // MARK: Keys

  /// A page of keys. There may be a hundred thousand, so it is made on a thread.
  func keys(_ request: APIRequest) -> HTTPAnswer {
    let page: ListPage
    do throws(ValueError) {
      page = try ListPage(request.http)
    } catch {
      return ListPage.refusal(error)
    }
    let (keys, now) = (authorizer.keys, clock.wallTime)
    return .later(
      NIOSingletons.posixBlockingThreadPool.runIfActive(eventLoop: request.eventLoop) {
        .json(KeysAnswer(keys.page(after: page.after, limit: page.limit), now: now))
      })
  }

  func addKey(_ request: APIRequest) -> HTTPAnswer {
    guard let database else { return .now(Self.needsState.response) }
    let key: AccessKey
    var generator = SystemRandomNumberGenerator()
    let text = AccessKey.text(using: &generator)
    do throws(ValueError) {
      let wanted = try JSONText.decode(KeyRequest.self, from: request.http.body)
      key = AccessKey(grant: try Self.grant(wanted, now: clock.wallTime), secret: Secret(text), madeAt: clock.wallTime)
    } catch {
      return .now(Problem(.malformedBody, "\(error.reason).", help: "\(error.advice).").response)
    }
    let (authorizer, keys, now) = (authorizer, authorizer.keys, clock.wallTime)
    let (events, logger, who) = (events, logger, request.who)
    return onDisk(request) {
      let wasClosed = authorizer.isClosed
      let hadPublishers = keys.hadPublishers
      guard keys.add(key) else {
        return Problem(
          .keyExists, "There is a key of that name, or there are \(ControlDatabase.keyLimit) keys.",
          help: "Choose another name, or delete a key."
        ).response
      }
      do {
        try database.add(key)
      } catch {
        _ = keys.remove(key.grant.name)
        // A key that never was closes no server.
        if !hadPublishers { keys.forgetPublishers() }
        throw error
      }
      guard !wasClosed, authorizer.isClosed else { return .json(KeyAnswer(key, text: text, now: now)) }
      Self.tellClosed(by: who, key: key.grant.name, events, logger)
      return .json(KeyAnswer(key, text: text, note: Authorizer.closed, now: now))
    }
  }

  /// Tells that publishers need a key from now on.
  ///
  /// - Parameter key: the name of the first key; nil where a reload brought it.
  package static func tellClosed(by who: String?, key: String?, _ events: EventLog?, _ logger: Logger) {
    logger.warning("\(Authorizer.closed)", metadata: key.map { ["key": "\($0)"] })
    events?.tell(.accessClosed, by: who, ["key": .text(orNull: key)])
  }

  /// Deletes a key and ends the publications that depend on it.
  func removeKey(_ request: APIRequest) -> HTTPAnswer {
    guard let database else { return .now(Self.needsState.response) }
    let (authorizer, keys, streams, logger) = (authorizer, authorizer.keys, streams, logger)
    let (name, now) = (request[0], clock.wallTime)
    return onDisk(request) {
      guard let key = keys[name] else {
        guard !keys.isConfigured(name) else {
          return Problem(
            .keyIsConfigured, "That key stands in the configuration file.",
            help: "Remove it there, and reload the settings."
          ).response
        }
        return Problem(.noSuchKey, "There is no key of that name.").response
      }
      try database.removeKey(name)
      _ = keys.remove(name)
      streams.endRevoked()
      if authorizer.isClosedToAll { logger.warning("\(Authorizer.closedToAll)") }
      return .json(KeyAnswer(key, now: now))
    }
  }

  private static func grant(_ wanted: KeyRequest, now: WallTime) throws(ValueError) -> AccessGrant {
    var grant = AccessGrant(name: try AccessKey.name(parsing: wanted.name))
    for (action, texts) in [(AccessAction.publish, wanted.publish), (.watch, wanted.watch), (.record, wanted.record)] {
      guard let texts, !texts.isEmpty else { continue }
      guard texts.count <= AccessKey.patternLimit else {
        throw ValueError(
          "a key has at most \(AccessKey.patternLimit) patterns of an action", advice: "use patterns with *")
      }
      grant.streams[action] = try texts.map { text throws(ValueError) in try StreamPattern(parsing: text) }
    }
    if let scope = wanted.scope {
      guard let known = AdminScope(rawValue: scope) else {
        throw ValueError("that is no scope", advice: "use read, operate or admin")
      }
      grant.scope = known
    }
    guard !grant.streams.isEmpty || grant.scope != nil else {
      throw ValueError("the key would allow nothing", advice: "give publish, watch, record or scope")
    }
    if let text = wanted.expiresAt {
      guard let time = UTCText.read(text), time > now else {
        throw ValueError("expiresAt is no time to come", advice: "write 2027-01-31T00:00:00Z")
      }
      grant.ends = time
    }
    return grant
  }

  // MARK: Settings

  func settings(_ request: APIRequest) -> HTTPAnswer {
    withSettings(request) { .json(await $0.listing(of: nil)) }
  }

  func settingsOfStream(_ request: APIRequest) -> HTTPAnswer {
    guard let name = StreamName(request[0]) else { return .now(Self.noName.response) }
    return withSettings(request) { .json(await $0.listing(of: name)) }
  }

  func reload(_ request: APIRequest) -> HTTPAnswer {
    withSettings(request) { Self.response(await $0.reload(by: request.who)) }
  }

  /// Replaces what was set of a stream; without a body takes it back.
  func setSettings(_ request: APIRequest, clearing: Bool) -> HTTPAnswer {
    guard let name = StreamName(request[0]) else { return .now(Self.noName.response) }
    guard database != nil else { return .now(Self.needsState.response) }
    let text = clearing ? nil : String(buffer: request.http.body)
    return withSettings(request) { Self.response(await $0.set(text, of: name, by: request.who)) }
  }

  private static func response(_ result: Result<ReloadAnswer, SettingsMistake>) -> HTTPResponse {
    switch result {
    case .success(let answer): .json(answer)
    case .failure(let mistake) where mistake.isOfServer: Problem.unreadable(mistake.text).response
    case .failure(let mistake):
      Problem(.settingsRefused, mistake.text, help: "Nothing was changed. Correct it and try again.").response
    }
  }

  // MARK: Answers that wait

  private func withSettings(
    _ request: APIRequest, _ body: @escaping @Sendable (any SettingsControl) async -> HTTPResponse
  ) -> HTTPAnswer {
    guard let control = settings.control else {
      return .now(Problem(.settingsFixed, "This server's settings cannot be read again.").response)
    }
    let promise = request.eventLoop.makePromise(of: HTTPResponse.self)
    promise.completeWithTask { await body(control) }
    return .later(promise.futureResult)
  }

  private func onDisk(
    _ request: APIRequest, _ body: @escaping @Sendable () throws -> HTTPResponse
  ) -> HTTPAnswer {
    .later(
      NIOSingletons.posixBlockingThreadPool.runIfActive(eventLoop: request.eventLoop) {
        do { return try body() } catch { return Problem.unreadable("\(error)").response }
      })
  }

  private static let noName = Problem(.invalidStreamName, "No stream can have that name.")

  private static let needsState = Problem(
    .needsState, "This server keeps no state, so what is set over the API would be forgotten.",
    help: "Start it with --state FOLDER or WEIR_STATE.")
}

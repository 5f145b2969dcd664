internal import Control
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Settings

/// Reads the configuration again while the server runs, at SIGHUP and over the API. A configuration with a mistake is refused
/// as a whole, and the old one goes on.
actor SettingsReloader {
  /// What takes the new configuration.
  struct Parts: Sendable {
    /// Where a configuration listens.
    var places: @Sendable (ServerConfiguration) -> [ListeningSocket]
    /// Gets ready for a configuration, as far as that can fail: reads a certificate, and the keys of tokens. Returns what makes it hold.
    var prepare: @Sendable (ServerConfiguration) async throws -> @Sendable () -> Void
    var listening: ListeningSockets
  }

  /// What the server was started with. Flags and variables stay, the file is read again. A setting that needs a restart is
  /// compared with it.
  private let atStart: SettingSources
  private var current: SettingSources
  private let parts: Parts
  /// Keeps what is set over the API; nil where it cannot be set.
  let control: ControlDatabase?
  private let events: EventLog?
  private let logger: Logger
  /// One reload after the other: each waits for the one before.
  private var last: Task<Void, Never>?

  init(given: SettingSources, parts: Parts, control: ControlDatabase?, events: EventLog? = nil, logger: Logger) {
    self.events = events
    (atStart, current, self.parts, self.control, self.logger) = (given, given, parts, control, logger)
  }

  /// What a reload did.
  struct Outcome: Sendable {
    /// What differs from before, but for what needs a restart.
    var changes: SettingChanges
    /// What differs from the start of the server and needs a restart.
    var pending: [String]
  }

  /// The sources of the present settings.
  var sources: SettingSources { current }

  /// Which content of the configuration file a change goes with.
  enum FileContent: Sendable {
    case asItIsNow
    case asItWasRead
  }

  /// Changes the sources of settings. Throws `ConfigurationError` for a mistake, and where an address cannot be listened at.
  ///
  /// - Parameters:
  ///   - who: who asked for it, for the event.
  ///   - commit: makes the change last; it may throw.
  func change(
    _ file: FileContent, by who: String?, _ edit: @escaping @Sendable (SettingSources) throws -> SettingSources,
    commit: @escaping @Sendable () throws -> Void = {}
  ) async throws -> Outcome {
    let before = last
    let task = Task { () -> Result<Outcome, any Error> in
      await before?.value
      do { return .success(try await self.perform(file, who, edit, commit)) } catch { return .failure(error) }
    }
    last = Task { _ = await task.value }
    return try await task.value.get()
  }

  private func perform(
    _ file: FileContent, _ who: String?, _ edit: @Sendable (SettingSources) throws -> SettingSources,
    _ commit: @escaping @Sendable () throws -> Void
  ) async throws -> Outcome {
    let next: SettingSources
    let configuration: ServerConfiguration
    do {
      next = try edit(file == .asItIsNow ? try readFile() : current)
      configuration = try ServerConfiguration(loading: next)
    } catch {
      logger.error("the settings stay as they are: \(error)")
      throw error
    }
    let places = parts.places(configuration)
    let opened: [(place: ListeningSocket, bound: SocketAddress)]
    let apply: @Sendable () -> Void
    do {
      apply = try await parts.prepare(configuration)
      opened = try await parts.listening.opened(of: places)
    } catch {
      logger.error("the settings stay as they are: \(error)")
      throw error
    }
    do {
      try await NIOSingletons.posixBlockingThreadPool.runIfActive(commit)
    } catch {
      for one in opened { await one.place.stop(one.bound) }
      throw error
    }
    let outcome = Outcome(
      changes: try SettingChanges(from: current, to: next),
      pending: try SettingChanges(from: atStart, to: next).places[.restart] ?? [])
    // Nobody sees the new settings before the event is written.
    let changed = outcome.changes.places.values.joined().sorted().prefix(20).joined(separator: ", ")
    await events?.tell(.settingsReloaded, by: who, ["changed": .text(orNull: changed)]).written()
    current = next
    apply()
    await parts.listening.replace(with: opened, next: places)
    tell(outcome)
    return outcome
  }

  private func readFile() throws -> SettingSources {
    var sources = try atStart.readingFile()
    sources.setByAPI = current.setByAPI
    return sources
  }

  private func tell(_ outcome: Outcome) {
    func list(_ effect: SettingEffect, _ words: String) -> String? {
      outcome.changes.places[effect].map {
        "\(words): \($0.prefix(10).joined(separator: ", "))" + ($0.count > 10 ? " …" : "")
      }
    }
    let parts = [list(.now, "changed"), list(.nextEpoch, "from the next epoch or recording on")].compactMap { $0 }
    logger.notice("settings read again: \(parts.isEmpty ? "nothing changed" : parts.joined(separator: "; "))")
    if !outcome.pending.isEmpty {
      logger.warning("these settings need a restart: \(outcome.pending.joined(separator: ", "))")
    }
  }
}

internal import Answers
internal import API
internal import Control
internal import Publishing
internal import Settings

extension SettingsReloader: SettingsControl {
  func reload(by who: String?) async -> Result<ReloadAnswer, SettingsMistake> {
    await answer { try await self.change(.asItIsNow, by: who) { $0 } }
  }

  func set(_ text: String?, of stream: StreamName, by who: String?) async -> Result<ReloadAnswer, SettingsMistake> {
    guard let control else {
      return .failure(SettingsMistake(text: "the server keeps no state (--state)", isOfServer: true))
    }
    return await answer {
      let texts = try text.map { try ConfigFile.texts(of: stream, setByAPI: $0) }
      // The file stays as it was read last: a reload is asked for by itself.
      return try await self.change(.asItWasRead, by: who) { sources in
        var sources = sources
        sources.setByAPI[stream] = texts
        return sources
      } commit: {
        try control.setSettings(text, of: stream)
      }
    }
  }

  func listing(of stream: StreamName?) async -> SettingsAnswer {
    let sources = sources
    let own = stream.flatMap { stream in
      try? sources.ofStreams.first { $0.pattern.matches(stream) }?.sources
    }
    let given = own ?? sources
    let settings = ServerOptions.all.filter { stream == nil || $0.path?.isOfStreams ?? false }
    return SettingsAnswer(
      settings: settings.compactMap { setting in
        let texts = given.texts(of: setting)
        guard let first = texts.first else { return nil }
        return SettingsAnswer.Setting(
          place: (stream == nil ? setting.path?.description : setting.path?.withinStream) ?? setting.name.flag,
          value: setting.isSecret ? nil : texts.map(\.text).joined(separator: ","), from: first.origin.description,
          effect: setting.effect.rawValue)
      })
  }

  private func answer(
    _ change: @Sendable () async throws -> Outcome
  ) async -> Result<ReloadAnswer, SettingsMistake> {
    do {
      let outcome = try await change()
      return .success(
        ReloadAnswer(
          changed: outcome.changes.places[.now] ?? [], fromNextEpoch: outcome.changes.places[.nextEpoch] ?? [],
          needRestart: outcome.pending))
    } catch {
      return .failure(SettingsMistake(text: "\(error)", isOfServer: !(error is ConfigurationError)))
    }
  }
}

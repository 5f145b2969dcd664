/// Settings, and where each value comes from.
struct SettingsAnswer: APIObject {
  var settings: [Setting]

  struct Setting: APIObject {
    /// The place in the configuration file: `limits.viewers`.
    let place: String
    /// As text; null for a key or token.
    let value: String?
    /// `--flag`, `VARIABLE`, `weir.yaml:3:5`, `API` or `default`.
    let from: String
    /// When a change takes effect: `now`, `next epoch` or `restart`.
    let effect: String
  }
}

/// What a reload changed, by the places of the settings.
struct ReloadAnswer: APIObject {
  let changed: [String]
  let fromNextEpoch: [String]
  let needRestart: [String]
}

/// Settings, and where each value comes from.
package struct SettingsAnswer: APIObject {
  var settings: [Setting]

  package init(settings: [Setting]) {
    self.settings = settings
  }

  package struct Setting: APIObject {
    /// The place in the configuration file: `limits.viewers`.
    let place: String
    /// As text; null for a key or token.
    let value: String?
    /// `--flag`, `VARIABLE`, `weir.yaml:3:5`, `API` or `default`.
    let from: String
    /// When a change takes effect: `now`, `next epoch` or `restart`.
    let effect: String

    package init(place: String, value: String?, from: String, effect: String) {
      (self.place, self.value, self.from, self.effect) = (place, value, from, effect)
    }
  }
}

/// What a reload changed, by the places of the settings.
package struct ReloadAnswer: APIObject {
  package let changed: [String]
  package let fromNextEpoch: [String]
  package let needRestart: [String]

  package init(changed: [String], fromNextEpoch: [String], needRestart: [String]) {
    (self.changed, self.fromNextEpoch, self.needRestart) = (changed, fromNextEpoch, needRestart)
  }
}

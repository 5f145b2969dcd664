package import Streams

extension StreamSettings {
  /// The defaults, but for what `change` sets.
  package init(_ change: (inout StreamSettings) -> Void) {
    self.init()
    change(&self)
  }
}

package import Publishing

extension StreamRegistry {
  /// The streams for `/metrics`. A stream with its own series keeps it while it exists. The counters of other streams are kept
  /// when they are removed, so that no counter decreases.
  package struct Overview: Sendable {
    package var streams: [LiveStream]
    package var named: Set<StreamName>
    package var departed: StreamCounters
    /// Refused publishers, by reason.
    package var rejections: [String: Int]
  }
}

package import Base

/// Which publishers a stream takes, beside their keys.
package struct PublisherRule: Sendable, Hashable {
  /// Which one of two publishers with a key of the name gets it.
  package enum Takeover: String, Sendable, Hashable, CaseIterable {
    /// The one that comes later.
    case newest
    /// The one that is there, as long as it sends.
    case first
  }

  package var takeover = Takeover.newest
  /// The addresses that may publish; empty for all.
  package var from: [AddressRange] = []

  package init(takeover: Takeover = .newest, from: [AddressRange] = []) {
    (self.takeover, self.from) = (takeover, from)
  }

  /// - Parameter host: an address as text; nil if there is none.
  func admit(_ host: String?) -> Bool {
    guard !from.isEmpty else { return true }
    guard let address = host.flatMap({ NetworkAddress(parsing: $0) }) else { return false }
    return from.contains { $0.contains(address) }
  }
}

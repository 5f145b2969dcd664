internal import FMP4
internal import Publishing

/// The key frame intervals of earlier streams by name, so that their next playlist need not wait for a measurement.
package struct KnownGOPDurations: Sendable {
  private var lengths: [StreamName: MediaTime] = [:]
  /// The names in the order in which they came.
  private var names: [StreamName] = []

  /// Publishers choose the names, so their number is limited. Beyond it the oldest name is forgotten.
  static let limit = 1000

  subscript(name: StreamName) -> MediaTime? { lengths[name] }

  /// The names in the order in which they came, each with its newest length.
  var inOrder: [(name: StreamName, length: MediaTime)] {
    names.compactMap { name in lengths[name].map { (name, $0) } }
  }

  /// - Parameter length: nil if the stream ended before it was known; then what was known before holds.
  mutating func remember(_ length: MediaTime?, of name: StreamName) {
    guard let length else { return }
    guard lengths.updateValue(length, forKey: name) == nil else { return }
    names.append(name)
    if names.count > Self.limit { lengths[names.removeFirst()] = nil }
  }
}

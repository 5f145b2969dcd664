/// Counts what addresses have open, and admits no more than a limit for each and for all. A value type.
package struct AddressCount: Sendable {
  private let perAddress: Int
  private let inAll: Int
  private var counts: [String: Int] = [:]
  private var all = 0

  package init(perAddress: Int, inAll: Int) { (self.perAddress, self.inAll) = (perAddress, inAll) }

  /// Whether the address may have one more.
  package func hasRoom(for address: String) -> Bool { !isFull && hasShare(for: address) }

  /// Whether the address may have one more of its own, whatever others have.
  package func hasShare(for address: String) -> Bool { counts[address, default: 0] < perAddress }

  /// Whether all together have as many as they may.
  package var isFull: Bool { all >= inAll }

  /// The addresses that have most.
  package var largest: Set<String> {
    let most = counts.values.max()
    return Set(counts.lazy.filter { $0.value == most }.map(\.key))
  }

  /// Counts one more of the address; false if it may not have it.
  package mutating func admit(_ address: String) -> Bool {
    guard hasRoom(for: address) else { return false }
    counts[address, default: 0] += 1
    all += 1
    return true
  }

  /// One that was admitted is gone.
  package mutating func leave(_ address: String) {
    guard let count = counts[address] else { return }
    counts[address] = count > 1 ? count - 1 : nil
    all -= 1
  }
}

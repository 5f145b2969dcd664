internal import Synchronization

/// Where the bytes of a file begin that can be pushed back under its readers: a recording's head is inserted before the
/// media while viewers read it. Offsets count from the first byte that was ever written; `shift` is what stands before
/// it now. Readers and the one who pushes never wait for each other: a read during which the bytes moved is done again.
package final class FileOrigin: Sendable {
  /// Odd while bytes move.
  private let generation = Atomic<UInt64>(0)
  private let bytesBefore: Atomic<Int>

  package init(shift: Int = 0) {
    bytesBefore = Atomic(shift)
  }

  /// Bytes before the first one.
  package var shift: Int { bytesBefore.load(ordering: .acquiring) }

  /// Does what pushes the bytes back by `count`, or forth if it is negative; `move` tells whether they have moved. One
  /// thread at a time.
  package func push(by count: Int, _ move: () -> Bool) -> Bool {
    generation.wrappingAdd(1, ordering: .sequentiallyConsistent)
    let hasMoved = move()
    if hasMoved { bytesBefore.wrappingAdd(count, ordering: .sequentiallyConsistent) }
    generation.wrappingAdd(1, ordering: .sequentiallyConsistent)
    return hasMoved
  }

  /// What `body` read with that shift; nil when the bytes moved meanwhile and it is worth nothing.
  package func read<R>(_ body: (_ shift: Int) -> R) -> R? {
    let before = generation.load(ordering: .sequentiallyConsistent)
    guard before & 1 == 0 else { return nil }
    let result = body(bytesBefore.load(ordering: .sequentiallyConsistent))
    return generation.load(ordering: .sequentiallyConsistent) == before ? result : nil
  }
}

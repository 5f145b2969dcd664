internal import Synchronization

/// The start of a file's media, which can move while the file is read: the movie header of a recording is inserted before them.
/// Offsets count from the first byte that was ever written; `shift` is the number of bytes before it. Readers and the writer
/// never block each other: a read during which the bytes moved is repeated.
package final class FileOrigin: Sendable {
  /// Odd while bytes move.
  private let generation = Atomic<UInt64>(0)
  private let bytesBefore: Atomic<Int>

  /// The bytes never move.
  package let isFixed: Bool

  package init(shift: Int = 0, isFixed: Bool = false) {
    bytesBefore = Atomic(shift)
    self.isFixed = isFixed
  }

  /// Bytes before the first one that was written.
  package var shift: Int { bytesBefore.load(ordering: .acquiring) }

  /// Moves the bytes by `count`, which is negative for a move to the front. `move` does the work and returns whether the bytes
  /// moved. Call from one thread at a time.
  package func push(by count: Int, _ move: () -> Bool) -> Bool {
    generation.wrappingAdd(1, ordering: .sequentiallyConsistent)
    let hasMoved = move()
    if hasMoved { bytesBefore.wrappingAdd(count, ordering: .sequentiallyConsistent) }
    generation.wrappingAdd(1, ordering: .sequentiallyConsistent)
    return hasMoved
  }

  /// The result of `body` with the current shift. Nil when the bytes moved during the read, which makes it invalid.
  package func read<R>(_ body: (_ shift: Int) -> R) -> R? {
    let before = generation.load(ordering: .sequentiallyConsistent)
    guard before & 1 == 0 else { return nil }
    let result = body(bytesBefore.load(ordering: .sequentiallyConsistent))
    return generation.load(ordering: .sequentiallyConsistent) == before ? result : nil
  }
}

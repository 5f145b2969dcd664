/// The server's room for workers, counted where it counts descriptors.
package struct WorkerRoom: Sendable {
  /// Takes the room of one worker and its transcoder. False if there is none.
  package let take: @Sendable () -> Bool
  package let giveBack: @Sendable () -> Void

  /// Nothing is counted.
  package static let unlimited = WorkerRoom(take: { true }, giveBack: {})

  package init(take: @escaping @Sendable () -> Bool, giveBack: @escaping @Sendable () -> Void) {
    self.take = take
    self.giveBack = giveBack
  }
}

internal import Synchronization

/// Opens devices on threads of their own: a driver may take its time, and the stream goes on meanwhile.
enum DeviceOpening {
  /// How often it is looked whether the device is there, in nanoseconds.
  private static let glance: Int64 = 5_000_000
  /// Drivers that nobody waits for any more may hold this many threads; the next device waits for one of them.
  static let mostLeft = 16
  private static let left = Atomic(0)

  /// Opens a device.
  ///
  /// - Parameters:
  ///   - make: opens it; called on a thread of its own, which ends afterwards.
  ///   - meanwhile: called in between until it is open; says in how many nanoseconds it wants to be called again, or nil
  ///     where nobody wants the device any more.
  /// - Returns: the device, to be used on one thread; nil where nobody wants it any more.
  /// - Throws: what `make` or `meanwhile` threw.
  static func open<Device>(
    _ make: @escaping @Sendable () throws -> Device, meanwhile: () throws -> Int64?
  ) throws -> Device? {
    while left.load(ordering: .relaxed) >= mostLeft {
      guard let due = try meanwhile() else { return nil }
      DedicatedThread.sleep(nanoseconds: min(due, glance))
    }
    let place = Place<Device>()
    try DedicatedThread.start(named: "weir-open") {
      let outcome = Result { try make() }
      // What nobody wants any more is closed right here, since nobody else holds it.
      if !place.put(Opened(outcome: outcome)) { left.subtract(1, ordering: .relaxed) }
    }
    do {
      while true {
        if let opened = place.take() { return try opened.outcome.get() }
        guard let due = try meanwhile() else { break }
        DedicatedThread.sleep(nanoseconds: min(due, glance))
      }
    } catch {
      leave(place)
      throw error
    }
    leave(place)
    return nil
  }

  private static func leave<Device>(_ place: Place<Device>) {
    left.add(1, ordering: .relaxed)
    // It has come at the very last moment, or has failed: no thread is held.
    if !place.leave() { left.subtract(1, ordering: .relaxed) }
  }

  /// What one thread has made and leaves to another.
  private struct Opened<Device>: @unchecked Sendable {
    let outcome: Result<Device, any Error>
  }

  private final class Place<Device>: Sendable {
    private struct State {
      var opened: Opened<Device>?
      var isOver = false
      var isLeft = false
    }

    private let state = Mutex(State())

    /// False where nobody waits for it any more.
    func put(_ opened: Opened<Device>) -> Bool {
      state.withLock { state in
        state.isOver = true
        guard !state.isLeft else { return false }
        state.opened = opened
        return true
      }
    }

    func take() -> Opened<Device>? {
      state.withLock { state in
        defer { state.opened = nil }
        return state.opened
      }
    }

    /// Nobody waits any more; false where the opening is over already.
    func leave() -> Bool {
      state.withLock { state in
        state.opened = nil
        state.isLeft = true
        return !state.isOver
      }
    }
  }
}

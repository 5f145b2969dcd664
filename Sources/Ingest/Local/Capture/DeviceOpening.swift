internal import Base
internal import Synchronization

/// Opens devices on separate threads: a driver may take long, and the stream continues meanwhile.
enum DeviceOpening {
  /// Interval of the checks whether the device is open, in nanoseconds.
  private static let glance: Int64 = 5_000_000
  /// Most threads held by abandoned openings. The next device waits for one of them to end.
  static let mostLeft = 16
  private static let left = Atomic(0)

  /// Opens a device.
  ///
  /// - Parameters:
  ///   - make: opens the device. Called on a separate thread, which ends afterwards.
  ///   - meanwhile: called repeatedly until the device is open. Returns the nanoseconds to its next call, or nil to
  ///   abandon the opening.
  /// - Returns: the device, for use on one thread. Nil if the opening was abandoned.
  /// - Throws: errors of `make` or `meanwhile`.
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
      // An abandoned device is closed right here, because nothing else holds it.
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
    // It has just opened or failed: no thread is held.
    if !place.leave() { left.subtract(1, ordering: .relaxed) }
  }

  /// A result passed from one thread to another.
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

    /// False if the opening was abandoned.
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

    /// Abandons the opening. False if it has ended already.
    func leave() -> Bool {
      state.withLock { state in
        state.opened = nil
        state.isLeft = true
        return !state.isOver
      }
    }
  }
}

internal import Synchronization

/// Opens devices on threads of their own: a driver may take its time, and the stream goes on meanwhile.
enum DeviceOpening {
  /// How often it is looked whether the device is there, in nanoseconds.
  private static let glance: Int64 = 5_000_000

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
    let place = Place<Device>()
    try DedicatedThread.start(named: "weir-open") {
      let outcome = Result { try make() }
      place.opened.withLock { $0 = Opened(outcome: outcome) }
    }
    while true {
      if let opened = place.opened.withLock({ $0 }) { return try opened.outcome.get() }
      guard let wish = try meanwhile() else { return nil }
      DedicatedThread.sleep(nanoseconds: min(wish, glance))
    }
  }

  /// What one thread has made and leaves to another.
  private struct Opened<Device>: @unchecked Sendable {
    let outcome: Result<Device, any Error>
  }

  private final class Place<Device>: Sendable {
    let opened = Mutex<Opened<Device>?>(nil)
  }
}

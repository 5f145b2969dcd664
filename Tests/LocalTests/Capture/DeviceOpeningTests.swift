import Base
import Glibc
@testable import Local
import Synchronization
import Testing

@Suite struct DeviceOpeningTests {
  private struct Broken: Error {}

  @Test func theStreamGoesOnWhileADeviceIsBeingOpened() throws {
    let mayOpen = Mutex(false)
    var calls = 0
    let device = try DeviceOpening.open {
      while !mayOpen.withLock({ $0 }) { DedicatedThread.sleep(nanoseconds: 1_000_000) }
      return "camera"
    } meanwhile: {
      calls += 1
      if calls == 5 { mayOpen.withLock { $0 = true } }
      return 1_000_000
    }
    #expect(device == "camera" && calls >= 5)
  }

  @Test func whatItThrowsIsToldAndWhatIsWantedNoMoreIsLeft() throws {
    #expect(throws: Broken.self) {
      try DeviceOpening.open { () throws -> Int in
        throw Broken()
      } meanwhile: {
        1
      }
    }
    let isOver = Mutex(false)
    let device = try DeviceOpening.open {
      while !isOver.withLock({ $0 }) { DedicatedThread.sleep(nanoseconds: 1_000_000) }
      return 1
    } meanwhile: {
      nil
    }
    isOver.withLock { $0 = true }
    #expect(device == nil)
  }

  /// A device that says when it is closed.
  private final class Device: Sendable {
    private let onClose: @Sendable () -> Void
    init(onClose: @escaping @Sendable () -> Void) { self.onClose = onClose }
    deinit { onClose() }
  }

  @Test func aDeviceThatComesTooLateIsClosed() throws {
    let mayOpen = Mutex(false)
    let closings = Mutex(0)
    let device = try DeviceOpening.open {
      while !mayOpen.withLock({ $0 }) { DedicatedThread.sleep(nanoseconds: 1_000_000) }
      return Device { closings.withLock { $0 += 1 } }
    } meanwhile: {
      nil
    }
    #expect(device == nil)
    mayOpen.withLock { $0 = true }
    for _ in 0..<2000 where closings.withLock({ $0 }) == 0 { DedicatedThread.sleep(nanoseconds: 10_000_000) }
    #expect(closings.withLock { $0 } == 1)
  }
}

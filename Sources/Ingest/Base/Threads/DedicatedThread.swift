internal import Glibc

/// A thread for work that computes or blocks for long. Event loops and the task pool must not do that.
package enum DedicatedThread {
  /// Longest single sleep in nanoseconds, so that a sleeping thread soon notices a stop.
  static let longestSleep: Int64 = 50_000_000

  /// The system could not start a thread. `code` is errno.
  package struct Failure: Error, CustomStringConvertible {
    let code: Int32
    package var description: String { "cannot start a thread: \(String(cString: strerror(code)))" }
  }

  /// Runs work on a new thread and returns when it is done.
  package static func run(named name: String, _ work: @escaping @Sendable () -> Void) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      do throws(Failure) {
        try start(named: name) {
          work()
          continuation.resume()
        }
      } catch {
        continuation.resume(throwing: error)
      }
    }
  }

  /// Starts work on a new, detached thread.
  package static func start(named name: String, _ work: @escaping @Sendable () -> Void) throws(Failure) {
    var thread = pthread_t()
    let pointer = Unmanaged.passRetained(Job(name: name, work: work)).toOpaque()
    let code = pthread_create(&thread, nil, { DedicatedThread.enter($0) }, pointer)
    guard code == 0 else {
      Unmanaged<Job>.fromOpaque(pointer).release()
      throw Failure(code: code)
    }
    pthread_detach(thread)
  }

  /// Sleeps for the given time, at most `longestSleep`.
  package static func sleep(nanoseconds: Int64) {
    var time = timespec(tv_sec: 0, tv_nsec: Int(max(0, min(nanoseconds, longestSleep))))
    nanosleep(&time, nil)
  }

  private static func enter(_ pointer: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let pointer else { return nil }
    let job = Unmanaged<Job>.fromOpaque(pointer).takeRetainedValue()
    pthread_setname_np(pthread_self(), job.name)
    job.work()
    return nil
  }

  private final class Job: Sendable {
    /// At most 15 bytes, the limit of the kernel.
    let name: String
    let work: @Sendable () -> Void

    init(name: String, work: @escaping @Sendable () -> Void) {
      self.name = name
      self.work = work
    }
  }
}

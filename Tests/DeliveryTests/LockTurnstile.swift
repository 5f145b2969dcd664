import Base
import Glibc
@testable import Streams
import Synchronization

/// Counts how often a thread takes a stream's lock, from outside: the lock has no counter, and costs nothing more.
///
/// Two threads hold the lock in turn, so a thread that wants it waits. Then the second holder waits behind it, and the first
/// lets go. The kernel gives such a mutex to who has waited longest (`FUTEX_UNLOCK_PI`), and after it to the second holder. So
/// each time that the thread takes the lock is seen. Where a thread waits is read from `/proc`.
final class LockTurnstile: Sendable {
  private final class Holder: Sendable {
    let thread = Atomic(0)
    let wants = Atomic(false)
    let has = Atomic(false)
    let isOver = Atomic(false)

    func run(_ stream: LiveStream) {
      thread.store(LockTurnstile.ownThread, ordering: .releasing)
      while !isOver.load(ordering: .acquiring) {
        guard wants.exchange(false, ordering: .acquiring) else {
          LockTurnstile.pause()
          continue
        }
        stream.state.withLock { _ in
          has.store(true, ordering: .releasing)
          while has.load(ordering: .acquiring), !isOver.load(ordering: .acquiring) { LockTurnstile.pause() }
        }
      }
    }

    /// Lets go of the lock.
    func leave() { has.store(false, ordering: .releasing) }

    func end() {
      isOver.store(true, ordering: .releasing)
      leave()
    }
  }

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// The kernel's number of the calling thread; 0 where the system does not tell it.
  static var ownThread: Int {
    var bytes = [CChar](repeating: 0, count: 64)
    guard readlink("/proc/thread-self", &bytes, bytes.count - 1) > 0 else { return 0 }
    let text = String(decoding: bytes.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return text.split(separator: "/").last.flatMap { Int($0) } ?? 0
  }

  private static let patience = 10_000_000_000 as Int64

  private let holders: [Holder]
  private let holding = Mutex(1)
  private let address: Substring

  private init(_ holders: [Holder], _ address: Substring) { (self.holders, self.address) = (holders, address) }

  /// Takes a stream's lock. Called on a thread that may wait, as everything here.
  static func closed(at stream: LiveStream) throws -> LockTurnstile {
    let holders = [Holder(), Holder()]
    var found: Substring?
    do {
      for holder in holders { try DedicatedThread.start(named: "turnstile") { holder.run(stream) } }
      try wait("the threads") { holders.allSatisfy { $0.thread.load(ordering: .acquiring) > 0 } }
      holders[0].wants.store(true, ordering: .releasing)
      try wait("the lock") { holders[0].has.load(ordering: .acquiring) }
      holders[1].wants.store(true, ordering: .releasing)
      // The second waits for nothing else, so this is the address of the mutex.
      let second = holders[1].thread.load(ordering: .acquiring)
      try wait("the second thread") {
        found = mutex(of: second)
        return found != nil
      }
      holders[0].leave()
      try wait("the lock") { holders[1].has.load(ordering: .acquiring) }
    } catch {
      for holder in holders { holder.end() }
      throw error
    }
    return LockTurnstile(holders, found ?? "")
  }

  /// Lets all go on.
  func letAllGo() { for holder in holders { holder.end() } }

  /// Lets a thread through the lock, each time that it comes to it, until it has nothing more to do. Returns how often.
  /// `isOver` is asked while the thread is not at the lock.
  func passes(of thread: Int, until isOver: () -> Bool) throws -> Int {
    var count = 0
    let end = MonotonicTime.now() &+ Self.patience
    while true {
      if Self.mutex(of: thread) == address {
        let next = 1 - holding.withLock { $0 }
        holders[next].wants.store(true, ordering: .releasing)
        let waiting = holders[next].thread.load(ordering: .acquiring)
        try Self.wait("the next holder") { Self.mutex(of: waiting) == address }
        try turn(to: next)
        count += 1
      } else if isOver() {
        return count
      } else if MonotonicTime.now() > end {
        throw Failure(description: "after \(count) passes the thread did neither come nor end")
      } else {
        Self.pause()
      }
    }
  }

  private func turn(to next: Int) throws {
    holders[1 - next].leave()
    try Self.wait("the lock") { holders[next].has.load(ordering: .acquiring) }
    holding.withLock { $0 = next }
  }

  private static func pause() { usleep(100) }

  private static func wait(_ what: String, until isMet: () -> Bool) throws {
    let end = MonotonicTime.now() &+ patience
    while !isMet() {
      guard MonotonicTime.now() < end else { throw Failure(description: "\(what) did not come in 10 s") }
      pause()
    }
  }

  /// Address of the mutex that a thread waits for in the kernel; nil if it waits for none.
  private static func mutex(of thread: Int) -> Substring? {
    let file = Glibc.open("/proc/self/task/\(thread)/syscall", O_RDONLY)
    guard file >= 0 else { return nil }
    defer { Glibc.close(file) }
    var bytes = [UInt8](repeating: 0, count: 256)
    let count = read(file, &bytes, bytes.count)
    // Its number, then its arguments: address and operation.
    let fields = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self).split(separator: " ")
    guard fields.count > 2, let operation = Int(fields[2].dropFirst(2), radix: 16) else { return nil }
    // FUTEX_LOCK_PI and FUTEX_LOCK_PI2, without the mark for one process.
    return [6, 13].contains(operation & 0x7F) ? fields[1] : nil
  }
}

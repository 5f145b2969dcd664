import Base
import CProbe
import CProcess
import Glibc
import Synchronization
import Testing

/// What a worker can still do after an attack has taken it over. A filter is of the thread that asks for it and of those that it
/// starts, so a thread of the tests can wear it.
@Suite struct WorkerConfinementTests {
  private struct Answers: Sendable {
    var byName: [String: Int] = [:]
    var isFiltered = false
  }

  /// What the system answers to each of these calls, on a thread that has the workers' filter.
  private func answers(
    _ attempts: [(name: String, call: @Sendable () -> Int)],
    filter: @escaping @Sendable () -> Int32 = { weir_allow_computing_only() }
  ) async throws -> Answers {
    let answers = Mutex(Answers())
    try await DedicatedThread.run(named: "confined") {
      _ = weir_gain_nothing()
      let isFiltered = filter() == 0
      answers.withLock { answers in
        answers.isFiltered = isFiltered
        for attempt in attempts { answers.byName[attempt.name] = attempt.call() }
      }
    }
    return answers.withLock { $0 }
  }

  private static func call(_ number: Int32, _ arguments: Int...) -> Int {
    let all = arguments + [0, 0, 0, 0]
    return weir_try(Int(number), all[0], all[1], all[2], all[3])
  }

  @Test func nothingIsOpenedConnectedStartedSignalledOrTraced() async throws {
    let forbidden: [(name: String, call: @Sendable () -> Int)] = [
      ("fork", { weir_try_to_fork() }),
      ("a thread with a network of its own", { weir_try_a_namespace() }),
      ("the limits of a process by its number", { weir_try_limits(Int(getpid()), 0) }),
      ("the limits of the server", { weir_try_limits(Int(getppid()), 1) }),
      ("new limits of its own", { weir_try_limits(0, 1) }),
      ("openat", { "/dev/null".withCString { Self.call(SYS_openat, -100, Int(bitPattern: $0), 0) } }),
      ("memfd_create", { "".withCString { Self.call(SYS_memfd_create, Int(bitPattern: $0)) } }),
      ("socket", { Self.call(SYS_socket, 1, 1) }),
      ("connect", { Self.call(SYS_connect, 0) }),
      ("sendmsg", { Self.call(SYS_sendmsg, 0) }),
      ("recvmsg", { Self.call(SYS_recvmsg, 0) }),
      ("dup", { Self.call(SYS_dup, 0) }),
      ("execve", { "/nothing".withCString { Self.call(SYS_execve, Int(bitPattern: $0)) } }),
      ("kill", { Self.call(SYS_kill, Int(getpid())) }),
      ("tgkill", { Self.call(SYS_tgkill, Int(getpid()), Int(getpid())) }),
      ("pidfd_open", { Self.call(SYS_pidfd_open, Int(getpid())) }),
      ("ptrace", { Self.call(SYS_ptrace, -1) }),
      ("process_vm_readv", { Self.call(SYS_process_vm_readv, Int(getpid())) }),
      ("setpgid", { Self.call(SYS_setpgid) }),
      ("setsid", { Self.call(SYS_setsid) }),
      ("unshare", { Self.call(SYS_unshare) }),
      ("bpf", { Self.call(SYS_bpf, -1) }),
      ("io_uring_setup", { Self.call(SYS_io_uring_setup) }),
      ("being dumped", { Self.call(SYS_prctl, 4, 1) }),
      ("outliving the server", { Self.call(SYS_prctl, 1, 0) }),
    ]
    let answers = try await answers(forbidden)
    #expect(answers.isFiltered)
    for (name, _) in forbidden { #expect(answers.byName[name] == -Int(weir_eperm), "\(name)") }
  }

  @Test func aWorkerWithDatagramsOpensConnectsAndStartsNothing() async throws {
    let forbidden: [(name: String, call: @Sendable () -> Int)] = [
      ("fork", { weir_try_to_fork() }),
      ("openat", { "/dev/null".withCString { Self.call(SYS_openat, -100, Int(bitPattern: $0), 0) } }),
      ("socket", { Self.call(SYS_socket, 2, 2) }),
      ("bind", { Self.call(SYS_bind, 0) }),
      ("listen", { Self.call(SYS_listen, 0) }),
      ("accept", { Self.call(SYS_accept, 0) }),
      ("connect", { Self.call(SYS_connect, 0) }),
      ("dup", { Self.call(SYS_dup, 0) }),
      ("execve", { "/nothing".withCString { Self.call(SYS_execve, Int(bitPattern: $0)) } }),
      ("kill", { Self.call(SYS_kill, Int(getpid())) }),
      ("ptrace", { Self.call(SYS_ptrace, -1) }),
    ]
    let allowed: [(name: String, call: @Sendable () -> Int)] = [
      ("sendmsg", { Self.call(SYS_sendmsg, -1) }), ("recvmsg", { Self.call(SYS_recvmsg, -1) }),
    ]
    let answers = try await answers(forbidden + allowed) { weir_allow_datagrams_too() }
    #expect(answers.isFiltered)
    for (name, _) in forbidden { #expect(answers.byName[name] == -Int(weir_eperm), "\(name)") }
    for (name, _) in allowed { #expect(answers.byName[name] == -Int(EBADF), "\(name)") }
  }

  @Test func itComputesOnThreadsOfItsOwn() async throws {
    let answers = try await answers([
      ("its own limits", { weir_try_limits(0, 0) }),
      // The C library then takes clone, whose flags the filter can read.
      ("clone3", { weir_try_to_fork_anew() }),
      ("its thread's name", { "rung".withCString { Self.call(SYS_prctl, 15, Int(bitPattern: $0)) } }),
      (
        "threads",
        {
          let done = BoundedQueue<Int>(capacity: 1)
          do {
            try DedicatedThread.start(named: "rung") { done.give(Self.call(SYS_kill, Int(getpid()))) }
          } catch {
            return 0
          }
          return done.take() ?? 0
        }
      ),
    ])
    #expect(answers.isFiltered)
    #expect(answers.byName["its own limits"] == 0)
    #expect(answers.byName["clone3"] == -Int(weir_enosys))
    #expect(answers.byName["its thread's name"] == 0)
    #expect(answers.byName["threads"] == -Int(weir_eperm), "they run, and have the filter as well")
  }
}

internal import Glibc

/// Starts workers.
package struct WorkerLauncher: Sendable {
  /// Starts a worker. Called on a thread that outlives it.
  package var start: @Sendable () throws(WorkerFailure) -> RunningWorker

  package init(start: @escaping @Sendable () throws(WorkerFailure) -> RunningWorker) {
    self.start = start
  }

  /// The descriptor under which a worker has the further one that it is given.
  package static let passedDescriptor: Int32 = 3

  /// Workers as separate processes, which inherit only a socket as standard input. Their other output is discarded: a
  /// compromised worker could fill a log.
  ///
  /// - Parameters:
  ///   - executable: the path of this program.
  ///   - arguments: those that make it a worker.
  ///   - descriptor: a further one that it inherits, as `passedDescriptor`.
  package static func process(
    executable: String = "/proc/self/exe", arguments: [String], passing descriptor: Int32? = nil
  ) -> WorkerLauncher {
    WorkerLauncher { () throws(WorkerFailure) in try spawn(executable, arguments, descriptor) }
  }

  private static func spawn(
    _ executable: String, _ arguments: [String], _ passed: Int32?
  ) throws(WorkerFailure) -> RunningWorker {
    var ends: [Int32] = [-1, -1]
    let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { throw WorkerFailure("socketpair", errno) }
    defer { close(ends[1]) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO)
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0)
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    if let passed { posix_spawn_file_actions_adddup2(&actions, passed, passedDescriptor) }
    posix_spawn_file_actions_addclosefrom_np(&actions, passedDescriptor + (passed == nil ? 0 : 1))
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // A separate process group: signals from a terminal go to the server's group, and the server handles them.
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
    posix_spawnattr_setpgroup(&attributes, 0)
    var words = (["weir"] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    // Passes no environment variables of the server; they may hold keys.
    var environment: [UnsafeMutablePointer<CChar>?] = [nil]
    var process = pid_t()
    let code = posix_spawn(&process, executable, &actions, &attributes, &words, &environment)
    guard code == 0 else {
      close(ends[0])
      throw WorkerFailure("start \(executable)", code)
    }
    let (identifier, socket) = (process, ends[0])
    return RunningWorker(socket: socket, processID: identifier) {
      // Kills its process group, so that its children end too. The group keeps its number until waitpid.
      kill(-identifier, SIGKILL)
      kill(identifier, SIGKILL)
      var status: Int32 = 0
      while waitpid(identifier, &status, 0) < 0, errno == EINTR {}
      close(socket)
      return Self.words(forStatus: status)
    }
  }

  /// How a process ended, from its status (wait(2)).
  private static func words(forStatus status: Int32) -> String {
    let signal = status & 0x7f
    return signal == 0 ? "it exited with \(status >> 8 & 0xff)" : "signal \(signal) ended it"
  }
}

/// A worker and the server's end of its socket.
package struct RunningWorker: Sendable {
  package let socket: Int32
  /// Nil if it is not a process.
  package let processID: Int32?
  /// Ends it at once and closes the socket. Returns how it ended. Call it once.
  package let end: @Sendable () -> String

  package init(socket: Int32, processID: Int32?, end: @escaping @Sendable () -> String) {
    self.socket = socket
    self.processID = processID
    self.end = end
  }
}

/// The system could not start a worker. `code` is errno.
package struct WorkerFailure: Error, Sendable, CustomStringConvertible {
  package let description: String

  package init(_ attempt: String, _ code: Int32) {
    description = "cannot \(attempt): \(String(cString: strerror(code))) (errno \(code))"
  }
}

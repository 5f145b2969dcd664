internal import ArgumentParser
internal import Base
internal import Glibc
internal import Settings

/// The program: finds the command, runs it, and turns an error into one line and an exit status: 0 ok, 1 failed, 2 usage, 78
/// configuration.
@main
enum Weir {
  static func main() async {
    // SVT-AV1 would write lines outside the log. No other thread that could read the environment runs yet.
    setenv("SVT_LOG", "0", 0)
    do {
      let arguments = CommandNames.helpInFront(Arguments.joiningNumbers(Arguments.ofProcess()))
      // A server would open ports, and record into whatever folder this is.
      guard !arguments.isEmpty else { return print(RootCommand.helpMessage()) }
      if let flags = PlainFlags.read(arguments) { return try await ServeCommand.serve(flags, openingPage: false) }
      try CommandNames.check(arguments)
      var command = try RootCommand.parseAsRoot(arguments)
      if var asynchronous = command as? any AsyncParsableCommand {
        try await asynchronous.run()
      } else {
        try command.run()
      }
    } catch {
      exit(report(error))
    }
  }

  /// Prints the error, or the requested help, and returns the exit status.
  private static func report(_ error: any Error) -> Int32 {
    if let error = error as? ConfigurationError {
      LogOutput.standardError.write("weir: error: \(error)\n")
      return error.exitCode
    }
    // The command has already reported the error.
    if let code = error as? ExitCode { return code.rawValue }
    if RootCommand.exitCode(for: error).isSuccess {
      print(RootCommand.fullMessage(for: error))
      return 0
    }
    let message = LogText.escaped(RootCommand.message(for: error))
    if RootCommand.exitCode(for: error) == .validationFailure {
      LogOutput.standardError.write("weir: error: \(message); see weir --help\n")
      return 2
    }
    LogOutput.standardError.write("weir: error: \(message)\n")
    return 1
  }
}

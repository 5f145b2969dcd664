internal import ArgumentParser
internal import Base
internal import Streams
internal import Transcode

/// `weir transcode-worker`: decodes and encodes for the server that started it. The server talks to it through standard input.
/// For internal use.
struct TranscodeWorkerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: WorkerLauncher.command, abstract: "Transcode for the server that started it.", shouldDisplay: false)

  func run() {
    TranscodeWorker.runAsProcess()
  }
}

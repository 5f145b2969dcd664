internal import ArgumentParser
internal import Ingest

/// `weir transcode-worker`: decodes and encodes for a server that started it, which talks to it by its standard input.
/// Not for people.
struct TranscodeWorkerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: WorkerLauncher.command, abstract: "Transcode for the server that started it.", shouldDisplay: false)

  func run() {
    TranscodeWorker.runAsProcess()
  }
}

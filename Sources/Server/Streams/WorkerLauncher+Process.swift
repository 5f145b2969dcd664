internal import Ingest

extension WorkerLauncher {
  /// The command that runs this program as a worker.
  static let command = "transcode-worker"

  /// Workers are processes of this program.
  static var ownProcess: WorkerLauncher { .process(arguments: [command]) }
}

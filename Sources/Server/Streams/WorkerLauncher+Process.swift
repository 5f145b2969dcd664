internal import Ingest

extension WorkerLauncher {
  /// The command that runs this program as a worker.
  static let command = "transcode-worker"

  /// The command that runs this program as the worker of SRT.
  static let srtCommand = "srt-worker"

  static func srt(udp: Int32) -> WorkerLauncher { .process(arguments: [srtCommand], passing: udp) }

  /// Workers are processes of this program.
  static var ownProcess: WorkerLauncher { .process(arguments: [command]) }
}

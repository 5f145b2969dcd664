package import Base

extension WorkerLauncher {
  /// The command that runs this program as a worker.
  package static let command = "transcode-worker"

  /// The command that runs this program as the worker of SRT.
  package static let srtCommand = "srt-worker"

  package static func srt(udp: Int32) -> WorkerLauncher { .process(arguments: [srtCommand], passing: udp) }

  /// Workers are processes of this program.
  package static var ownProcess: WorkerLauncher { .process(arguments: [command]) }
}

internal import ArgumentParser
internal import Base
internal import SRT
internal import Streams

/// `weir srt-worker`: takes SRT connections for the server that started it. The server talks to it through standard
/// input, and gives it a UDP socket. For internal use.
struct SRTWorkerCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: WorkerLauncher.srtCommand, abstract: "Take SRT connections for the server that started it.",
    shouldDisplay: false)

  func run() {
    SRTWorker.runAsProcess()
  }
}

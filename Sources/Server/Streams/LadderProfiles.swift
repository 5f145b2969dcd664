internal import Ingest

/// Which streams have which rungs.
struct LadderProfiles: Sendable, Hashable {
  /// Of streams that have no ladder of their own.
  var standard: [RungSpecification] = []
  var byName: [StreamName: [RungSpecification]] = [:]

  subscript(name: StreamName) -> [RungSpecification] { byName[name] ?? standard }
}

/// Which streams have their audio in which other codec, beside the source's.
struct AudioProfiles: Sendable, Hashable {
  /// Of streams that have no setting of their own.
  var standard: AudioSpecification?
  var byName: [StreamName: AudioSpecification?] = [:]

  subscript(name: StreamName) -> AudioSpecification? { byName[name] ?? standard }
}

extension WorkerLauncher {
  /// The command by which this program is a worker.
  static let command = "transcode-worker"

  /// Workers are processes of this program.
  static var ownProcess: WorkerLauncher { .process(arguments: [command]) }
}

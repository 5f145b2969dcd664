internal import Ingest

/// The rungs of each stream.
struct LadderProfiles: Sendable, Hashable {
  /// For streams without their own ladder.
  var standard: [RungSpecification] = []
  var byName: [StreamName: [RungSpecification]] = [:]

  subscript(name: StreamName) -> [RungSpecification] { byName[name] ?? standard }
}

/// The additional audio codec of each stream.
struct AudioProfiles: Sendable, Hashable {
  /// For streams without their own setting.
  var standard: AudioSpecification?
  var byName: [StreamName: AudioSpecification?] = [:]

  subscript(name: StreamName) -> AudioSpecification? { byName[name] ?? standard }
}

extension WorkerLauncher {
  /// The command that runs this program as a worker.
  static let command = "transcode-worker"

  /// Workers are processes of this program.
  static var ownProcess: WorkerLauncher { .process(arguments: [command]) }
}

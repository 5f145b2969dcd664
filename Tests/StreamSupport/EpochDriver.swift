package import FMP4
internal import Playlists
@testable package import Streams
internal import Support

extension StreamSettings {
  /// With what a server's manifests keep.
  package var asServed: StreamSettings {
    var settings = self
    settings.periodsToKeep = DASHManifest.periodsToKeep
    return settings
  }
}

extension Epoch {
  /// What is stored for the next process.
  package var wholeRecord: EpochRecord? {
    var record = record
    record?.periods = periodsToKeep
    record?.inits = initsToKeep
    return record
  }
}

/// Feeds synthetic media to an epoch.
package struct EpochDriver {
  package var epoch: Epoch
  package private(set) var events: [StoredEvent] = []

  package init(_ settings: StreamSettings = StreamSettings(), knownGroup: MediaTime? = nil) {
    epoch = Epoch(id: "epoch1", settings: settings.asServed, knownGroup: knownGroup)
  }

  /// 2026-11-21T07:24:10.123Z
  package static let wall: WallTime = 1_795_245_850_123_000_000

  /// A publication of both tracks from its own time 0.
  package mutating func publish(
    seconds: Int, group: Int = 60, wall: WallTime = EpochDriver.wall, isSteady: Bool = false
  ) throws {
    epoch.startPublication()
    try receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: wall)))
    try receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: seconds, group: group, isSteady: isSteady) {
      try receive(.sample(sample))
    }
  }

  package mutating func receive(_ event: MediaEvent) throws { events += try epoch.receive(event) }
  package mutating func interrupt() throws { events += try epoch.interrupt() }
  package mutating func end() throws { events += try epoch.end(.finished) }
}

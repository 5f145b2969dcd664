internal import FMP4

extension ServerConfiguration {
  /// What streams need to know of the configuration.
  var streamSettings: StreamSettings {
    StreamSettings(
      partTarget: MediaTime(partDuration), segmentTarget: MediaTime(segmentDuration),
      targetDuration: targetDuration.setting, window: MediaTime(window),
      rewind: rewind.map { MediaTime($0) }, reconnectWindow: MediaTime(reconnectWindow),
      bounds: bounds, publicURL: publicURL, periodsToKeep: DASHManifest.periodsToKeep, layout: hlsLayout,
      partAddressing: partAddressing)
  }
}

extension ServerConfiguration {
  /// How many names there may be.
  var nameLimits: NameAllowance.Limits {
    NameAllowance.Limits(streams: maxStreams, names: maxNames, namesPerMinute: max(1, maxNames / 4))
  }

  /// Sinks that hold a stream's files open.
  var sinksPerStream: Int { [recordingsFolder, segmentsFolder].count { $0 != nil } + (rewind == nil ? 0 : 1) }
}

extension ServerConfiguration {
  /// Where recordings are; nil where nothing is recorded.
  var recordingsFolder: String? {
    switch recording {
    case .off: nil
    case .folder(let folder): folder
    }
  }

  /// The folder that pages are read from; nil for the embedded ones.
  var webFolder: String? {
    switch webFiles {
    case .embedded: nil
    case .folder(let folder): folder
    }
  }
}

extension ServerConfiguration.TargetDuration {
  fileprivate var setting: StreamSettings.TargetDuration {
    switch self {
    case .automatic: .automatic
    case .seconds(let seconds): .seconds(seconds)
    }
  }
}

extension MediaTime {
  /// Whole milliseconds of a duration.
  init(_ duration: Duration) {
    let (seconds, attoseconds) = duration.components
    self.init(milliseconds: seconds &* 1000 &+ attoseconds / 1_000_000_000_000_000)
  }
}

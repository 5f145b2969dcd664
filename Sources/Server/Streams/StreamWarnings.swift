internal import FMP4
internal import Publishing

/// The warnings of a stream, for the API and the log.
struct StreamWarnings: Sendable {
  /// About the key frame interval, and whether segments were cut without a key frame then.
  private var ofGroups: (text: String, isCut: Bool)?
  private var ofPublication: [PublicationWarning] = []

  /// Key frames may be this many times as far apart as segments are to be long.
  private static let tolerance = 1.5

  var texts: [String] { (ofGroups.map { [$0.text] } ?? []) + ofPublication.map(\.description) }

  mutating func beginEpoch() { ofGroups = nil }

  mutating func beginPublication() { ofPublication = [] }

  /// False when the warning exists already.
  mutating func add(_ warning: PublicationWarning) -> Bool {
    guard !ofPublication.contains(warning) else { return false }
    ofPublication.append(warning)
    return true
  }

  func contains(_ warning: PublicationWarning) -> Bool { ofPublication.contains(warning) }

  mutating func withdraw(_ warning: PublicationWarning) {
    ofPublication.removeAll { $0 == warning }
  }

  /// Removes the warnings about missing tracks for tracks that have arrived.
  mutating func withdraw(missing tracks: [TrackDescription]) {
    for track in tracks { withdraw(.neverCame(track.kind)) }
  }

  /// Checks the key frame interval. Returns a new warning, if any. Where the server decides when key frames come, it is as it should
  /// be: a longer distance is a pause of the frames, as of a slate that a browser draws in a hidden tab. A publisher that does not
  /// obey has a warning of its own (`PublicationWarning.ignoresRequests`).
  mutating func judge(
    _ epoch: borrowing Epoch, segmentTarget: MediaTime,
    of keyFrames: PublishRequest.KeyFrames = .asItsEncoderHasThem
  ) -> String? {
    switch keyFrames {
    case .asAsked: return nil
    case .every(let interval) where interval.seconds <= segmentTarget.seconds * Self.tolerance: return nil
    case .every, .asItsEncoderHasThem: break
    }
    guard let group = epoch.longestGroup else { return nil }
    let isCut = epoch.window.isCutWithoutKeyFrame
    let promised = Double(epoch.window.targetDuration ?? .max)
    // Longer than was promised before it came, or than segments should be.
    let isTooLong = isCut && group.seconds > promised + CutPolicy.roundingMargin.seconds
    guard isTooLong || group.seconds > segmentTarget.seconds * Self.tolerance else { return nil }
    if let ofGroups, ofGroups.isCut || !isCut { return nil }
    let distance = Decimals.fixed(group, digits: 1)
    let text =
      (isCut
        ? "key frames are \(distance) s apart or more, so segments begin without one and players join late; set the"
        : "key frames are \(distance) s apart, so segments and latency are as long; set the")
      + " encoder's key frame interval to \(Decimals.fixed(segmentTarget, digits: 0)) s"
    ofGroups = (text, isCut)
    return text
  }
}

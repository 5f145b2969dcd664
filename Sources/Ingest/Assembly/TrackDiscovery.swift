internal import FMP4

/// Decides how long the beginning of a publication waits for its tracks. Tracks that were announced, or of which
/// something has come, are waited for two seconds; a second kind that nobody announced, or of which only what cannot be
/// taken has come, half a second. The wait is over when that much media has come or that much time has passed, whichever is
/// first.
struct TrackDiscovery: Sendable {
  enum Announcement: Sendable { case unknown, announced, absent }

  enum Decision: Sendable, Equatable {
    case wait
    /// Begin with what is there; these kinds were waited for in vain.
    case open(missing: [MediaKind])
  }

  /// Milliseconds.
  let announcedWait: Int64
  let unannouncedWait: Int64
  private(set) var video = Announcement.unknown
  private(set) var audio = Announcement.unknown
  /// Kinds of which something came that cannot be taken, and nothing else yet.
  private var unusable: Set<MediaKind> = []
  /// Arrival of the first media, in nanoseconds.
  private var firstArrival: Int64?
  private var earliest: Int64 = .max
  private var latest: Int64 = .min

  init(announcedWait: Int64, unannouncedWait: Int64) {
    self.announcedWait = announcedWait
    self.unannouncedWait = unannouncedWait
  }

  /// The metadata names these kinds and no others.
  mutating func announce(video hasVideo: Bool, audio hasAudio: Bool) {
    video = hasVideo ? .announced : .absent
    audio = hasAudio ? .announced : .absent
  }

  /// Something of this kind has come, whatever was announced. `time` is in nanoseconds on the timeline, nil for a
  /// configuration.
  mutating func saw(_ kind: MediaKind, time: Int64?, now: Int64) {
    if kind == .video { video = .announced } else { audio = .announced }
    unusable.remove(kind)
    if firstArrival == nil { firstArrival = now }
    if let time {
      earliest = min(earliest, time)
      latest = max(latest, time)
    }
  }

  /// Something of this kind has come that cannot be taken, before anything that can.
  mutating func leftOut(_ kind: MediaKind, now: Int64) {
    unusable.insert(kind)
    if firstArrival == nil { firstArrival = now }
  }

  /// Nothing that can be taken has come, for as long as it is waited for.
  func isInVain(now: Int64) -> Bool { !unusable.isEmpty && hasWaited(announcedWait, now) }

  /// Times before the present jump do not count as media any more.
  mutating func forgetMedia() {
    earliest = .max
    latest = .min
  }

  /// `videoReady` and `audioReady`: there is a configuration and a first sample to begin with. `isPartial`: of a further track
  /// of such a kind there is a configuration alone.
  func decide(videoReady: Bool, audioReady: Bool, isPartial: Bool = false, now: Int64) -> Decision {
    guard videoReady || audioReady else { return .wait }
    var missing: [MediaKind] = []
    for (kind, ready, announcement) in [(MediaKind.video, videoReady, video), (.audio, audioReady, audio)]
    where !ready {
      switch announcement == .announced && unusable.contains(kind) ? .unknown : announcement {
      case .absent: break
      case .announced:
        guard hasWaited(announcedWait, now) else { return .wait }
        missing.append(kind)
      case .unknown: guard hasWaited(unannouncedWait, now) else { return .wait }
      }
    }
    if isPartial, !hasWaited(announcedWait, now) { return .wait }
    return .open(missing: missing)
  }

  /// When a wait ends by the clock, in nanoseconds: the next one after `now`; nil when there is none.
  func deadline(after now: Int64) -> Int64? {
    guard let firstArrival else { return nil }
    return [unannouncedWait, announcedWait].map { firstArrival &+ $0 &* 1_000_000 }.filter { $0 > now }.min()
  }

  private func hasWaited(_ milliseconds: Int64, _ now: Int64) -> Bool {
    guard let firstArrival else { return false }
    let nanoseconds = milliseconds &* 1_000_000
    return now &- firstArrival >= nanoseconds || latest > earliest && latest &- earliest >= nanoseconds
  }
}

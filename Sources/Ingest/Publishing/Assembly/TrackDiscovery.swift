internal import Base
internal import FMP4

/// Decides how long the start of a publication waits for its tracks. Tracks that were announced, or have sent
/// something, are waited for two seconds. A second kind that was not announced, or has sent only unsupported media, is
/// waited for half a second. The wait ends after that much media or that much time, whichever is first.
struct TrackDiscovery: Sendable {
  enum Announcement: Sendable { case unknown, announced, absent }

  enum Decision: Sendable, Equatable {
    case wait
    /// Start with the present tracks. These announced kinds did not come.
    case open(missing: [MediaKind])
  }

  /// Milliseconds.
  let announcedWait: Int64
  let unannouncedWait: Int64
  private(set) var video = Announcement.unknown
  private(set) var audio = Announcement.unknown
  /// Kinds that have sent only unsupported media so far.
  private var unusable: Set<MediaKind> = []
  private var firstArrival: MonotonicTime?
  private var earliest: Int64 = .max
  private var latest: Int64 = .min

  init(announcedWait: Int64, unannouncedWait: Int64) {
    self.announcedWait = announcedWait
    self.unannouncedWait = unannouncedWait
  }

  /// Takes the kinds that the metadata names.
  mutating func announce(video hasVideo: Bool, audio hasAudio: Bool) {
    video = hasVideo ? .announced : .absent
    audio = hasAudio ? .announced : .absent
  }

  /// Records that media of this kind has come, whatever was announced. `time` is in nanoseconds on the timeline; nil
  /// for a configuration.
  mutating func saw(_ kind: MediaKind, time: Int64?, now: MonotonicTime) {
    if kind == .video { video = .announced } else { audio = .announced }
    if !unusable.isEmpty { unusable.remove(kind) }
    if firstArrival == nil { firstArrival = now }
    if let time {
      earliest = min(earliest, time)
      latest = max(latest, time)
    }
  }

  /// Records that unsupported media of this kind has come, before any supported media.
  mutating func leftOut(_ kind: MediaKind, now: MonotonicTime) {
    unusable.insert(kind)
    if firstArrival == nil { firstArrival = now }
  }

  /// Whether no supported media has come within the whole wait.
  func isInVain(now: MonotonicTime) -> Bool { !unusable.isEmpty && hasWaited(announcedWait, now) }

  /// Drops the media times before a jump.
  mutating func forgetMedia() {
    earliest = .max
    latest = .min
  }

  /// `videoReady` and `audioReady`: a configuration and a first sample are there. `isPartial`: another track of such a
  /// kind has only a configuration.
  func decide(videoReady: Bool, audioReady: Bool, isPartial: Bool = false, now: MonotonicTime) -> Decision {
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

  /// Time at which the next wait ends. Nil if there is none.
  func deadline(after now: MonotonicTime) -> MonotonicTime? {
    guard let firstArrival else { return nil }
    return [unannouncedWait, announcedWait].map { firstArrival &+ $0 &* 1_000_000 }.filter { $0 > now }.min()
  }

  private func hasWaited(_ milliseconds: Int64, _ now: MonotonicTime) -> Bool {
    guard let firstArrival else { return false }
    let nanoseconds = milliseconds &* 1_000_000
    return now &- firstArrival >= nanoseconds || latest > earliest && latest &- earliest >= nanoseconds
  }
}

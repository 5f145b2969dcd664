internal import Publishing
internal import Base
internal import FMP4

/// Puts the tracks of a sender on one clock. Each track's RTP timestamps run on a clock of their own, from a random value
/// (RFC 3550 §5.1). Sender reports tell how the clocks belong together (§6.4.1); until they come, arrival does.
///
/// The first video is the reference, or the first track where there is no video: its times stay as captured. The others
/// move after it, before the start at once, and later by `step` within `rest`, so that nothing jumps. A sender under load dates its
/// reports with the lateness of its packets: what that moves is no clock, and listeners hear each step.
struct SenderClocks {
  private struct Track {
    let id: TrackID
    let kind: MediaKind
    var clock: WireClock
    /// Common time minus time of the track's clock, in nanoseconds.
    var offset: Int64
    /// The sender's time of day minus time of the track's clock, by the mean of late reports, and how many made it.
    var report: Int64?
    var reports: Int64 = 0
    /// The time of the newest packet, and when it came.
    var newest: (time: Int64, at: MonotonicTime)
    /// When it was moved, and by how much. It has been at its place, as far as sure reports tell.
    var movedAt: MonotonicTime = .min
    var movedBy: Int64 = 0
    var isPlaced = false
  }

  /// Nanoseconds: a packet of audio, as browsers and ffmpeg make them. So `AudioGrid` follows by one gap or one dropped
  /// packet, and nothing is left over.
  static let step: Int64 = 20_000_000
  /// A clock that is off by 667 ppm is followed.
  static let rest: Int64 = 30_000_000_000
  /// The same on the way to the first place, in one direction: arrival, which counts until reports come, may be far off.
  static let firstRest: Int64 = 2_500_000_000
  /// Nanoseconds that a track may be off its place once the mean is sure: more than half a step, so that it does not go
  /// to and fro. The mean lags by 4 ms where a clock is off by 100 ppm, and audio stays within 20 ms.
  static let tolerance: Int64 = 13_000_000
  /// Reports that the mean is about. With fewer it is not sure, and a distance below `step` stays.
  static let meanReports: Int64 = 8
  /// Nanoseconds by which a report differs from the mean where the sender's clock was set.
  static let sudden: Int64 = 500_000_000
  /// Nanoseconds by which reports may differ from arrival. Others are no clock.
  static let farthest: Int64 = 5_000_000_000

  private var tracks: [Track] = []

  /// Whether a publication has begun with the times so far.
  var isRunning = false

  /// The time of an RTP timestamp, in nanoseconds.
  mutating func time(
    _ id: TrackID, _ kind: MediaKind, _ timestamp: UInt32, hertz: UInt32, now: MonotonicTime
  ) -> Int64 {
    guard let index = tracks.firstIndex(where: { $0.id == id }) else {
      var clock = WireClock(hertz: hertz, bits: 32)
      let time = clock.nanoseconds(UInt64(timestamp))
      tracks.append(
        Track(
          id: id, kind: kind, clock: clock, offset: now.nanoseconds &- time, newest: (now.nanoseconds, now)))
      tracks.sort { $0.id < $1.id }
      return now.nanoseconds
    }
    move(index, now)
    let time = tracks[index].clock.nanoseconds(UInt64(timestamp)) &+ tracks[index].offset
    tracks[index].newest = (time, now)
    return time
  }

  /// By how much less a track's timestamps have gone on since its newest packet than time has, in nanoseconds. Nil for a track
  /// without packets.
  func lag(_ id: TrackID, _ timestamp: UInt32, _ now: MonotonicTime) -> Int64? {
    guard let track = tracks.first(where: { $0.id == id }) else { return nil }
    var clock = track.clock
    let time = clock.nanoseconds(UInt64(timestamp)) &+ track.offset
    return (now &- track.newest.at) &- (time &- track.newest.time)
  }

  /// The sender's clocks have stood for so long, in nanoseconds.
  mutating func advance(by time: Int64) {
    for index in tracks.indices { tracks[index].offset &+= time }
  }

  /// Takes a report: at `wall` (nanoseconds) the track's clock showed `timestamp`.
  mutating func receive(_ id: TrackID, wall: Int64, timestamp: UInt32) {
    guard let index = tracks.firstIndex(where: { $0.id == id }) else { return }
    // A copy: a report may be about any time.
    var clock = tracks[index].clock
    let report = wall &- clock.nanoseconds(UInt64(timestamp))
    // Senders date their reports with the jitter of their threads: tens of milliseconds. The mean has less of it.
    if let mean = tracks[index].report, (report &- mean).magnitude < UInt64(Self.sudden) {
      tracks[index].reports = min(tracks[index].reports + 1, Self.meanReports)
      tracks[index].report = mean &+ (report &- mean) / tracks[index].reports
    } else {
      (tracks[index].report, tracks[index].reports) = (report, 1)
    }
  }

  /// The track's sender has another clock from now on.
  mutating func forget(_ id: TrackID) { tracks.removeAll { $0.id == id } }

  /// By its first video, or else its first track.
  private var reference: Track? { tracks.first { $0.kind == .video } ?? tracks.first }

  /// The sender's time of day at common time 0, by its reports. Nil before the first one.
  var timeOfDay: WallTime? {
    guard let reference, let report = reference.report else { return nil }
    let sinceUnix = report &- reference.offset &- Self.unixEpoch
    // Seconds of NTP begin again in 2036 (RFC 5905 §6).
    return WallTime(nanoseconds: report < Self.unixEpoch ? sinceUnix &+ Self.era : sinceUnix)
  }

  /// 1970 in nanoseconds since 1900, and nanoseconds of an era of NTP.
  private static let (unixEpoch, era): (Int64, Int64) = (2_208_988_800_000_000_000, 4_294_967_296_000_000_000)

  private mutating func move(_ index: Int, _ now: MonotonicTime) {
    guard let reference, reference.id != tracks[index].id,
      let ours = tracks[index].report, let theirs = reference.report
    else { return }
    let error = reference.offset &- theirs &+ ours &- tracks[index].offset
    guard error != 0, error.magnitude < UInt64(Self.farthest) else { return }
    guard isRunning else { return tracks[index].offset &+= error }
    let isSure = min(tracks[index].reports, reference.reports) >= Self.meanReports
    if isSure, error.magnitude < UInt64(Self.step) { tracks[index].isPlaced = true }
    guard error.magnitude >= UInt64(isSure ? Self.tolerance : Self.step) else { return }
    let step = error < 0 ? -Self.step : Self.step
    let isOnItsWay = !tracks[index].isPlaced && tracks[index].movedBy != -step
    guard
      tracks[index].movedAt == .min
        || now &- tracks[index].movedAt >= (isOnItsWay ? Self.firstRest : Self.rest)
    else { return }
    (tracks[index].movedAt, tracks[index].movedBy) = (now, step)
    tracks[index].offset &+= step
  }
}

internal import Basics
internal import FMP4
internal import Ingest

/// What has come of a stream since its name came up. Only ever rises.
struct StreamCounters: Sendable {
  /// What came by one protocol.
  struct Intake: Sendable, Hashable {
    /// Of coded media.
    var bytes = 0
    var pictures = 0
    var keyFrames = 0
    var audioFrames = 0
    /// What came and could not be used.
    var lostPictures = 0
    var lostAudioFrames = 0
    /// Breaks of the publisher's timestamps.
    var jumps = 0

    static func += (total: inout Intake, more: Intake) {
      total.bytes &+= more.bytes
      total.pictures &+= more.pictures
      total.keyFrames &+= more.keyFrames
      total.audioFrames &+= more.audioFrames
      total.lostPictures &+= more.lostPictures
      total.lostAudioFrames &+= more.lostAudioFrames
      total.jumps &+= more.jumps
    }
  }

  var publications = 0
  /// Of the publication of the moment, and those of the same protocol before it.
  var intake = Intake()
  private var protocolName = ""
  private var others: [String: Intake] = [:]
  /// From the end of a part's media to where it could be had.
  var partDelay = Durations()
  /// Waits for what was not there yet.
  var waits = Durations()
  var playlistRenders = 0
  var droppedPictures = 0
  var workerRestarts = 0
  /// Of the worker that transcodes audio.
  var audioRestarts = 0

  /// A publication begins.
  mutating func begin(_ protocolName: String) {
    publications += 1
    guard protocolName != self.protocolName else { return }
    if publications > 1 { others[self.protocolName] = intake }
    intake = others.removeValue(forKey: protocolName) ?? Intake()
    self.protocolName = protocolName
  }

  /// By protocol.
  var intakes: [(protocolName: String, intake: Intake)] {
    var all = others.sorted { $0.key < $1.key }.map { (protocolName: $0.key, intake: $0.value) }
    if !protocolName.isEmpty { all.append((protocolName, intake)) }
    return all
  }

  static func += (total: inout StreamCounters, more: StreamCounters) {
    total.publications &+= more.publications
    for (name, intake) in more.intakes { total.others[name, default: Intake()] += intake }
    total.partDelay += more.partDelay
    total.waits += more.waits
    total.playlistRenders &+= more.playlistRenders
    total.droppedPictures &+= more.droppedPictures
    total.workerRestarts &+= more.workerRestarts
    total.audioRestarts &+= more.audioRestarts
  }
}

/// How far the newest audio and the newest picture of a publication reach.
struct AVSkew: Sendable {
  private struct Track: Sendable {
    let id: TrackID
    let kind: MediaKind
    let timescale: UInt32
    /// What a sample lasts that does not say so itself.
    let step: UInt32
    var end: MediaTime?

    init(_ track: TrackDescription) {
      id = track.id
      kind = track.kind
      timescale = track.timescale
      step = track.frameDuration ?? 0
    }

    mutating func take(_ sample: Sample) {
      end = MediaTime(ticks: sample.decodeTime &+ Int64(sample.duration ?? step), timescale: timescale)
    }
  }

  private var tracks: [Track] = []

  mutating func use(_ tracks: [TrackDescription]) { self.tracks = tracks.map(Track.init) }

  /// Of which kind the sample is; nil where it belongs to no track.
  mutating func take(_ sample: Sample) -> MediaKind? {
    guard let index = tracks.firstIndex(where: { $0.id == sample.track }) else { return nil }
    tracks[index].take(sample)
    return tracks[index].kind
  }

  /// How far the newest media reaches; nil before the first sample.
  var reach: MediaTime? {
    tracks.compactMap(\.end).max()
  }

  /// Seconds by which the first audio track is ahead of the first video track; nil where one of them is missing.
  var skew: Double? {
    guard let picture = end(of: .video), let audio = end(of: .audio) else { return nil }
    return (audio - picture).seconds
  }

  private func end(of kind: MediaKind) -> MediaTime? { tracks.first { $0.kind == kind }?.end }
}

extension StreamCounters {
  mutating func add(_ transcoding: TranscodeStatus, of kind: MediaKind) {
    switch kind {
    case .video:
      droppedPictures &+= transcoding.droppedPictures
      workerRestarts &+= transcoding.restarts
    case .audio: audioRestarts &+= transcoding.restarts
    }
  }
}

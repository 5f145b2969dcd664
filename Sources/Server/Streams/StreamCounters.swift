package import Base
internal import FMP4
internal import Publishing
internal import Transcode

/// Counters of a stream since it was created. They never decrease.
package struct StreamCounters: Sendable {
  /// What arrived by one protocol.
  package struct Intake: Sendable, Hashable {
    /// Bytes of coded media.
    package var bytes = 0
    package var frames = 0
    package var keyFrames = 0
    package var audioFrames = 0
    /// Frames that arrived and could not be used.
    package var lostFrames = 0
    package var lostAudioFrames = 0
    /// Frames that came before the stream could begin.
    package var earlyFrames = 0
    package var earlyAudioFrames = 0
    /// Frames whose timestamp was wrong. They count above as well.
    package var mendedFrames = 0
    package var mendedAudioFrames = 0
    /// Corrections of audio that was apart from its timestamps: gaps, and places at which frames were dropped.
    package var audioCorrections = 0
    /// Jumps of the publisher's timestamps.
    package var jumps = 0

    static func += (total: inout Intake, more: Intake) {
      total.bytes &+= more.bytes
      total.frames &+= more.frames
      total.keyFrames &+= more.keyFrames
      total.audioFrames &+= more.audioFrames
      total.lostFrames &+= more.lostFrames
      total.lostAudioFrames &+= more.lostAudioFrames
      total.earlyFrames &+= more.earlyFrames
      total.earlyAudioFrames &+= more.earlyAudioFrames
      total.mendedFrames &+= more.mendedFrames
      total.mendedAudioFrames &+= more.mendedAudioFrames
      total.audioCorrections &+= more.audioCorrections
      total.jumps &+= more.jumps
    }
  }

  /// Packets of connections that count them.
  package struct Link: Sendable, Hashable {
    package var received = 0
    package var lost = 0
    package var retransmitted = 0
    package var dropped = 0

    /// Adds what came since earlier figures of the same connection.
    mutating func add(_ figures: LinkFigures, since earlier: LinkFigures) {
      received &+= Self.growth(figures.received, earlier.received)
      lost &+= Self.growth(figures.lost, earlier.lost)
      retransmitted &+= Self.growth(figures.retransmitted, earlier.retransmitted)
      dropped &+= Self.growth(figures.dropped, earlier.dropped)
    }

    private static func growth(_ now: UInt64, _ before: UInt64) -> Int {
      now > before ? Int(clamping: now - before) : 0
    }

    static func += (total: inout Link, more: Link) {
      total.received &+= more.received
      total.lost &+= more.lost
      total.retransmitted &+= more.retransmitted
      total.dropped &+= more.dropped
    }
  }

  package var link = Link()
  package var publications = 0
  /// Of the current publication, and of earlier ones by the same protocol.
  package var intake = Intake()
  private var protocolName = ""
  private var others: [String: Intake] = [:]
  /// The delay from the end of a part's media to its availability.
  package var partDelay = Durations()
  package var shortParts = ShortParts()
  /// Waits for something that was not available yet.
  package var waits = Durations()
  package var playlistRenders = 0
  package var droppedFrames = 0
  package var workerRestarts = 0
  /// Restarts of the worker for audio.
  package var audioRestarts = 0

  /// Begins a publication.
  mutating func begin(_ protocolName: String) {
    publications += 1
    guard protocolName != self.protocolName else { return }
    if publications > 1 { others[self.protocolName] = intake }
    intake = others.removeValue(forKey: protocolName) ?? Intake()
    self.protocolName = protocolName
  }

  /// By protocol.
  package var intakes: [(protocolName: String, intake: Intake)] {
    var all = others.sorted { $0.key < $1.key }.map { (protocolName: $0.key, intake: $0.value) }
    if !protocolName.isEmpty { all.append((protocolName, intake)) }
    return all
  }

  static func += (total: inout StreamCounters, more: StreamCounters) {
    total.publications &+= more.publications
    for (name, intake) in more.intakes { total.others[name, default: Intake()] += intake }
    total.link += more.link
    total.partDelay += more.partDelay
    total.shortParts += more.shortParts
    total.waits += more.waits
    total.playlistRenders &+= more.playlistRenders
    total.droppedFrames &+= more.droppedFrames
    total.workerRestarts &+= more.workerRestarts
    total.audioRestarts &+= more.audioRestarts
  }
}

/// The ends of the newest audio and the newest video of a publication.
struct AVSkew: Sendable {
  private struct Track: Sendable {
    let id: TrackID
    let kind: MediaKind
    let timescale: UInt32
    /// The duration of a sample that does not give its own.
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

  /// Takes a sample and returns its kind; nil when it belongs to no track.
  mutating func take(_ sample: Sample) -> MediaKind? {
    guard let index = tracks.firstIndex(where: { $0.id == sample.track }) else { return nil }
    tracks[index].take(sample)
    return tracks[index].kind
  }

  /// The end of the newest media; nil before the first sample.
  var reach: MediaTime? {
    // A loop makes no array for each sample.
    var reach: MediaTime?
    for track in tracks { if let end = track.end, reach.map({ $0 < end }) ?? true { reach = end } }
    return reach
  }

  /// Seconds by which the first audio track is ahead of the first video track; nil when one of them is missing.
  var skew: Double? {
    guard let video = end(of: .video), let audio = end(of: .audio) else { return nil }
    return (audio - video).seconds
  }

  private func end(of kind: MediaKind) -> MediaTime? { tracks.first { $0.kind == kind }?.end }
}

extension StreamCounters {
  mutating func add(_ transcoding: TranscodeStatus, of kind: MediaKind) {
    switch kind {
    case .video:
      droppedFrames &+= transcoding.droppedFrames
      workerRestarts &+= transcoding.restarts
    case .audio: audioRestarts &+= transcoding.restarts
    }
  }
}

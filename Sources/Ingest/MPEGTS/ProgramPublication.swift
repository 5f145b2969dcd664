internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing

/// One programme of a transport stream as a publication, with all of its tracks.
struct ProgramPublication {
  private var publication: Publication
  /// The tracks by PID.
  private var tracks: [UInt16: Track] = [:]
  /// Tracks that have ended. One that begins later continues one of them.
  private var ended: [Track] = []
  /// Its map has come.
  private(set) var hasMap = false
  /// The decode time of the newest unit, in ticks without wraps: cues are for times near it.
  private var newest: Int64?
  /// Cues before the first unit.
  private var earlyCues: [StreamCue] = []

  private struct Track {
    var id: TrackID
    var kind: MediaKind
    var language: String?
  }

  init(reading: ClockReading) { publication = Publication(reading: reading, wire: 90_000) }

  /// Bytes of media that wait for the start, and how many may.
  var heldBytes: Int { publication.heldBytes }
  var mostHeldAtStart: Int {
    get { publication.held.most }
    set { publication.held.most = newValue }
  }

  var awaitsStart: Bool { publication.awaitsStart }

  var encoder: String { publication.encoder }

  /// Time of the next `tick`. Nil if nothing waits.
  func deadline(after now: MonotonicTime) -> MonotonicTime? { publication.deadline(after: now) }

  /// Handles the passing of time. Throws if no supported media has come.
  mutating func tick(now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) {
    try publication.tick(now: now, to: &out)
  }

  /// The sender has ended.
  mutating func finish(to out: inout [PublicationAction]) { publication.finish(to: &out) }

  /// Takes the tracks of a new map.
  mutating func begin(_ map: ProgramMap, _ now: MonotonicTime, to out: inout [PublicationAction]) {
    hasMap = true
    let taken = map.elements.filter(\.content.isTaken)
    var gone: [TrackID] = []
    // Kinds of which something is left out.
    var (full, unsupported): (Set<MediaKind>, Set<MediaKind>) = ([], [])
    for (pid, track) in tracks where !taken.contains(where: { $0.pid == pid && $0.content.kind == track.kind }) {
      ended.append(track)
      gone.append(track.id)
      tracks[pid] = nil
    }
    for element in taken {
      guard let kind = element.content.kind else { continue }
      if tracks[element.pid] == nil {
        guard tracks.count < PublicationLimits.tracks else {
          publication.leaveOutFurtherTrack(of: kind, to: &out)
          full.insert(kind)
          continue
        }
        tracks[element.pid] = Track(id: newID(kind, element.language), kind: kind)
      }
      guard let id = tracks[element.pid]?.id else { continue }
      tracks[element.pid]?.language = element.language
      gone.removeAll { $0 == id }
      let language = element.language.flatMap(LanguageCode.three)
      publication.receive(TrackStatement(language: language, role: element.role), of: id)
    }
    for id in gone { publication.end(id, to: &out) }
    for element in map.elements {
      guard case .unsupported(let kind, let name) = element.content else { continue }
      let isAlone = !taken.contains { $0.content.kind == kind }
      publication.leaveOut(codec: name, of: kind, isAlone: isAlone, now: now, to: &out)
      unsupported.insert(kind)
    }
    for kind in [MediaKind.video, .audio] {
      if !full.contains(kind) { publication.hasRoom(for: kind, to: &out) }
      if !unsupported.contains(kind) { publication.takesAll(kind, to: &out) }
    }
    publication.receive(
      PublicationMetadata(
        hasVideo: taken.contains { $0.content.kind == .video }, hasAudio: taken.contains { $0.content.kind == .audio }))
  }

  /// The ID of a new track: that of an ended one with its language, of any ended one, or the lowest that is free.
  private mutating func newID(_ kind: MediaKind, _ language: String?) -> TrackID {
    ended.sort { $0.id < $1.id }
    let same = ended.firstIndex { $0.kind == kind && $0.language == language }
    if let index = same ?? ended.firstIndex(where: { $0.kind == kind }) { return ended.remove(at: index).id }
    let used = tracks.values.map(\.id)
    let number = (1...PublicationLimits.tracks).first { !used.contains(TrackID(kind, $0)) }
    return TrackID(kind, number ?? PublicationLimits.tracks + 1)
  }

  mutating func receive(
    _ event: ElementEvent, _ pid: UInt16, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    guard let track = tracks[pid] else { return }
    switch event {
    case .configuration(let coding, let record):
      _ = try publication.configure(track.id, coding, record: record, now: now, to: &out)
    case .unit(let unit):
      newest = unit.decode
      let decode = MediaTime(ticks: unit.decode, timescale: ProgramClock.hertz).nanoseconds
      let presentation = MediaTime(ticks: unit.presentation, timescale: ProgramClock.hertz).nanoseconds
      publication.receive(
        WireUnit(
          track: track.id, coding: unit.coding, time: decode, composition: presentation &- decode,
          isCountedOn: unit.isCountedOn, payload: unit.payload), now: now, to: &out)
      for cue in earlyCues { receive(cue, to: &out) }
      earlyCues = []
    case .lost(let kind): out.append(.lost(kind))
    case .early: out.append(publication.undecodable(track.id))
    case .unusable(let coding, let reason):
      let isAlone = tracks.values.count { $0.kind == track.kind } == 1
      publication.leaveOut(
        codec: "\(coding.name) (\(PeerText.printable(reason, limit: 200)))", of: track.kind, track.id,
        isAlone: isAlone, now: now, to: &out)
    }
  }

  /// Cues state 33 bits, as all times of the programme. They are for times within half a wrap of the newest unit.
  mutating func receive(_ cue: StreamCue, to out: inout [PublicationAction]) {
    guard let newest else {
      if earlyCues.count < MPEGTSLimits.earlyCues { earlyCues.append(cue) }
      return
    }
    let ticks = cue.presentation.map { ProgramClock.ticks($0, near: newest) }
    publication.receive(
      cue, at: ticks.map { MediaTime(ticks: $0, timescale: ProgramClock.hertz).nanoseconds }, to: &out)
  }
}

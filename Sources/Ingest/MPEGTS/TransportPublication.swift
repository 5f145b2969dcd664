internal import FMP4
internal import NIOCore

/// A publication whose media comes as an MPEG transport stream, by whatever way: HTTP, UDP, SRT or a file. It takes one
/// programme with all of its tracks.
struct TransportPublication {
  private var stream: TransportStream
  private var publication: Publication
  /// The tracks by PID. A track that begins after another of its kind has ended continues it.
  private var tracks: [UInt16: Track] = [:]
  private var nextID: UInt32 = 3
  private var freed: [MediaKind: [TrackID]] = [.video: [.video], .audio: [.audio]]
  private var events: [TransportEvent] = []
  private var begunAt: MonotonicTime?
  private var hasProgram = false

  private struct Track {
    var id: TrackID
    var kind: MediaKind
  }

  /// Time from the first byte within which a programme has to come, in nanoseconds.
  static let programWait: Int64 = 10_000_000_000

  init(reading: ClockReading, _ choice: ProgramChoice = .first) {
    stream = TransportStream(choice == .all ? .first : choice)
    publication = Publication(reading: reading)
  }

  var encoder: String { publication.encoder }
  var counts: TransportCounts { stream.counts }

  /// Time of the next `tick`. Nil if nothing waits.
  func deadline(after now: MonotonicTime) -> MonotonicTime? {
    guard !hasProgram, let begunAt else { return publication.deadline(after: now) }
    return max(begunAt &+ Self.programWait, now &+ 1)
  }

  /// Handles the passing of time. Throws if no programme or no supported media has come.
  mutating func tick(now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) {
    if !hasProgram, let begunAt, now &- begunAt >= Self.programWait {
      throw WireError(
        .malformed,
        "no programme of an MPEG transport stream within \(Self.programWait / 1_000_000_000) s: \(counts.packets) packets, "
          + "\(counts.skippedBytes) other bytes; send MPEG-TS with PAT and PMT")
    }
    try publication.tick(now: now, to: &out)
  }

  /// Takes received bytes. `now` is the arrival time.
  mutating func receive(_ bytes: ByteBuffer, now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) {
    begunAt = begunAt ?? now
    stream.receive(bytes, to: &events)
    try passOn(now, to: &out)
  }

  /// The transport has lost bytes before those that come next.
  mutating func noteLoss(bytes: Int) { stream.noteLoss(bytes: bytes) }

  /// The sender has ended: what is complete still counts.
  mutating func finish(now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) {
    stream.finish(to: &events)
    try passOn(now, to: &out)
  }

  private mutating func passOn(_ now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) {
    // Copied out, so that an error leaves no events behind.
    let batch = events
    events.removeAll(keepingCapacity: batch.count < 64)
    for event in batch {
      switch event {
      case .program(let map): begin(map, now, to: &out)
      case .element(_, let pid, let event): try receive(event, pid, now, to: &out)
      case .programs, .programEnded, .splice, .discontinuity: break
      }
    }
  }

  /// Takes the tracks of a new map.
  private mutating func begin(_ map: ProgramMap, _ now: MonotonicTime, to out: inout [PublicationAction]) {
    hasProgram = true
    let taken = map.elements.filter(\.content.isTaken)
    for (pid, track) in tracks where !taken.contains(where: { $0.pid == pid && $0.content.kind == track.kind }) {
      freed[track.kind, default: []].append(track.id)
      freed[track.kind]?.sort()
      tracks[pid] = nil
    }
    for element in taken {
      guard let kind = element.content.kind, tracks[element.pid] == nil else { continue }
      guard tracks.values.count(where: { $0.kind == kind }) < MPEGTSLimits.tracksOfKind else {
        publication.leaveOutFurtherTrack(of: kind, to: &out)
        continue
      }
      tracks[element.pid] = Track(id: newID(kind), kind: kind)
    }
    for element in map.elements {
      guard case .unsupported(let kind, let name) = element.content else { continue }
      let isAlone = !taken.contains { $0.content.kind == kind }
      publication.leaveOut(codec: name, of: kind, isAlone: isAlone, now: now, to: &out)
    }
    publication.receive(
      PublicationMetadata(
        hasVideo: taken.contains { $0.content.kind == .video }, hasAudio: taken.contains { $0.content.kind == .audio }))
  }

  private mutating func newID(_ kind: MediaKind) -> TrackID {
    if let id = freed[kind]?.first {
      freed[kind]?.removeFirst()
      return id
    }
    defer { nextID &+= 1 }
    return TrackID(nextID)
  }

  private mutating func receive(
    _ event: ElementEvent, _ pid: UInt16, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    guard let track = tracks[pid] else { return }
    switch event {
    case .configuration(let coding, let record):
      _ = try publication.configure(track.id, coding, record: record, now: now, to: &out)
    case .unit(let unit):
      let decode = MediaTime(ticks: unit.decode, timescale: ProgramClock.hertz).nanoseconds
      let presentation = MediaTime(ticks: unit.presentation, timescale: ProgramClock.hertz).nanoseconds
      publication.receive(
        WireUnit(
          track: track.id, coding: unit.coding, time: decode, composition: presentation &- decode,
          payload: unit.payload), now: now, to: &out)
    case .lost(let kind): out.append(.lost(kind))
    case .unusable(let coding, let reason):
      let isAlone = tracks.values.count { $0.kind == track.kind } == 1
      publication.leaveOut(
        codec: "\(coding.name) (\(PeerText.printable(reason, limit: 200)))", of: track.kind, isAlone: isAlone, now: now,
        to: &out)
    }
  }
}

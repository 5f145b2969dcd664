internal import Base
package import FMP4
internal import Logging
internal import NIOCore

/// Tracks whose media cannot be taken at present, or hardly be played, and what was told of each.
struct UnreadableTracks {
  private var told: [TrackID: PublicationWarning] = [:]
  /// What is told of tracks that are taken, and that few players can play.
  private var rare: [TrackID: PublicationWarning] = [:]
  private var logged: Set<PublicationWarning> = []
  /// Why what came of a track could not be used since its last unit that could.
  private var faults: [TrackID: (kind: MediaKind, reason: String, since: MonotonicTime)] = [:]
  /// Kinds of which a configuration was passed over.
  private var passedOver: Set<MediaKind> = []

  /// Most lines in the log. A publisher may come and go here with each frame, and each time with another reason.
  private static let lines = 8
  /// Most tracks whose faults are noted. A publisher may name 256 of a kind that never have a configuration.
  private static let most = 2 * PublicationLimits.tracks

  /// Tells of a track, unless something was told of it already.
  mutating func add(_ warning: PublicationWarning, _ track: TrackID, to out: inout [PublicationAction]) {
    guard told[track] == nil else { return }
    if logged.count < Self.lines, logged.insert(warning).inserted {
      out.append(.log(.warning, warning.description))
    }
    note(nil, track, to: &out)
    if !told.values.contains(warning) { out.append(.warn(warning)) }
    told[track] = warning
  }

  /// Tells of a track in an unsupported codec. False where one of its kind was told of already.
  mutating func add(
    codec: String, of kind: MediaKind, _ track: TrackID, to out: inout [PublicationAction]
  ) -> Bool {
    let isKnown = told.values.contains { if case .leftOutCodec(kind, _) = $0 { true } else { false } }
    guard !isKnown, told[track] == nil else { return false }
    add(.leftOutCodec(kind, codec), track, to: &out)
    return true
  }

  /// Takes back what was told of a track, unless it is true of another one.
  mutating func remove(_ track: TrackID, to out: inout [PublicationAction]) {
    guard let warning = told.removeValue(forKey: track), !told.values.contains(warning) else { return }
    out.append(.withdraw(warning))
  }

  /// The track has a configuration that can be taken: what was told of it is over. It may be one that few players can play.
  mutating func take(_ track: TrackID, _ coding: CodecID, to out: inout [PublicationAction]) {
    remove(track, to: &out)
    note(coding.isRarelyPlayed ? .rarelyPlayed(coding.name) : nil, track, to: &out)
  }

  /// The track has ended: nothing is true of it.
  mutating func end(_ track: TrackID, to out: inout [PublicationAction]) {
    faults[track] = nil
    remove(track, to: &out)
    note(nil, track, to: &out)
  }

  /// Tells, or takes back, that few players can play a track. The stream logs it, if nothing makes it untrue there.
  private mutating func note(_ warning: PublicationWarning?, _ track: TrackID, to out: inout [PublicationAction]) {
    guard rare[track] != warning else { return }
    if let former = rare.removeValue(forKey: track), !rare.values.contains(former) { out.append(.withdraw(former)) }
    guard let warning else { return }
    if !rare.values.contains(warning) { out.append(.warn(warning)) }
    rare[track] = warning
  }

  /// Notes why a unit of a track cannot be used. It is told when that lasts, and withdrawn with the next one that can.
  mutating func note(
    _ fault: String, _ kind: MediaKind, _ track: TrackID, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) {
    guard faults[track] != nil || faults.count < Self.most else { return }
    let since = faults[track]?.since ?? now
    faults[track] = (kind, fault, since)
    guard now &- since >= PublicationLimits.announcedTrackWait &* 1_000_000 else { return }
    add(.unreadable(kind, fault), track, to: &out)
  }

  /// Tells why nothing of a kind can be used. False if nothing of it came.
  mutating func tellFault(of kind: MediaKind, to out: inout [PublicationAction]) -> Bool {
    let found = faults.filter { $0.value.kind == kind }.min { $0.key < $1.key }
    guard let (track, fault) = found else { return false }
    add(.unreadable(kind, fault.reason), track, to: &out)
    return true
  }

  /// A unit of the track can be used.
  mutating func didRead(_ track: TrackID, to out: inout [PublicationAction]) {
    if !faults.isEmpty, faults.removeValue(forKey: track) != nil { remove(track, to: &out) }
  }

  /// Whether a configuration record that cannot be read is passed over: it is empty, or the track has a good one of that codec
  /// already. Says so once in the log.
  mutating func passesOver(
    _ record: ByteBuffer, _ error: CodecError, of coding: CodecID, behind known: Codec?,
    to out: inout [PublicationAction]
  ) -> Bool {
    let isEmpty = record.readableBytes == 0
    guard isEmpty || known?.id == coding && (coding.kind == .video || error.code != .unsupported) else { return false }
    guard passedOver.insert(coding.kind).inserted else { return true }
    let what = isEmpty ? "it is empty" : "\(error); the one before it still counts"
    out.append(.log(.warning, "a configuration of \(coding.name) is passed over: \(what)"))
    return true
  }
}

extension Publication {
  /// The frames of a track can be read again.
  package mutating func canRead(_ track: TrackID, to out: inout [PublicationAction]) {
    unreadable.remove(track, to: &out)
  }

  /// No track of a kind is in an unsupported codec any more, of those that have no number because of it.
  package mutating func takesAll(_ kind: MediaKind, to out: inout [PublicationAction]) {
    unreadable.remove(.unnamed(kind), to: &out)
  }

  /// Reports media of an additional track that is not accepted.
  package mutating func leaveOutFurtherTrack(of kind: MediaKind, to out: inout [PublicationAction]) {
    unreadable.add(.leftOutTrack(kind), .further(kind), to: &out)
  }

  /// All tracks of a kind have a place.
  package mutating func hasRoom(for kind: MediaKind, to out: inout [PublicationAction]) {
    unreadable.remove(.further(kind), to: &out)
  }
}

/// What stands for tracks without a number. No protocol has so high ones.
extension TrackID {
  fileprivate static func further(_ kind: MediaKind) -> TrackID { TrackID(kind, 1 << 20) }
  static func unnamed(_ kind: MediaKind) -> TrackID { TrackID(kind, 1 << 20 + 1) }
}

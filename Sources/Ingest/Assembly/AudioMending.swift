internal import FMP4

/// Counts how often audio is corrected (`AudioGrid`), and warns where that goes on: its clock and its samples do not keep together.
struct AudioMending {
  /// So many corrections of a track within that many nanoseconds of media are told.
  static let most = 3
  static let span: Int64 = 60_000_000_000

  /// Times of the newest corrections of each track, oldest first, in nanoseconds on the timeline.
  private var corrections: [TrackID: [Int64]] = [:]
  private var told: Set<TrackID> = []

  /// Takes what was done with a frame of audio.
  mutating func saw(
    _ correction: AudioGrid.Correction?, _ track: TrackID, at time: Int64, to out: inout [PublicationAction]
  ) {
    guard correction != nil else {
      guard !told.isEmpty, told.contains(track), let newest = corrections[track]?.last, time &- newest > Self.span,
        told.remove(track) != nil, told.isEmpty
      else { return }
      return out.append(.withdraw(.mendsAudio))
    }
    out.append(.inBand(.correctedAudio))
    var newest = corrections[track] ?? []
    newest.append(time)
    if newest.count > Self.most { newest.removeFirst() }
    corrections[track] = newest
    guard newest.count == Self.most, let first = newest.first, time &- first <= Self.span else { return }
    if told.isEmpty { out.tell(.mendsAudio) }
    told.insert(track)
  }
}

package import FMP4
package import Storage

extension Epoch {
  /// The init segment, and the fragments since the newest one at which decoding can start. A new viewer of `stream.mp4`
  /// begins with these. `tracks`: of these, each in fragments of its own; of the first of each kind for nil. Empty before
  /// the first init segment.
  package func piecesSinceLastKeyFrame(of tracks: [TrackID]? = nil) -> [BodyPiece] {
    guard let initSegment else { return [] }
    let head = tracks.map { ids in initSegment.showing(initSegment.tracks.filter { ids.contains($0.id) }) }
    let start = BodyPiece.bytes(head ?? initSegment.interleaved)
    var pieces: [BodyPiece] = []
    for segment in window.segments.reversed() where isSame(tracks, in: segment.initVersion, as: initSegment) {
      for fragment in segment.fragments.reversed() {
        let own =
          tracks.map { $0.flatMap { segment.pieces(of: $0, in: fragment) } } ?? segment.pieces(of: nil, in: fragment)
        pieces += own.reversed()
        if fragment.isIndependent { return [start] + pieces.reversed() }
      }
      if segment.followsDiscontinuity { break }
    }
    // Decoding cannot start with any stored fragment; the next fragments begin with a key frame.
    return [start]
  }

  /// The tracks (nil: the default tracks) are the same in a version as now.
  private func isSame(_ tracks: [TrackID]?, in version: Int, as now: InitSegment) -> Bool {
    guard version != now.version else { return true }
    guard let then = window.inits[version] else { return false }
    guard let tracks else { return then.defaultsVersion == now.defaultsVersion }
    return tracks.allSatisfy { then.version(of: $0) == now.version(of: $0) }
  }
}

extension LiveWindow {
  /// The segment whose samples of that rendition begin at `time` (ticks of the track). This is a segment in memory, or the next one
  /// if the newest ends, or is expected to end, at that time. Only segments count in which the track is the same as in this version
  /// of the init segment: another one may count other ticks.
  package func sequenceNumber(ofTime time: Int64, _ rendition: Rendition, initVersion: Int) -> Int? {
    for segment in segments.reversed() where names(segment, rendition, initVersion) {
      guard let track = (inits[segment.initVersion]?.tracks).flatMap(rendition.track),
        let span = segment.span(of: track.id)
      else { continue }
      let listing = span.listed
      if span.start == time || listing.start == time { return segment.sequenceNumber }
      let next = self.segment(segment.sequenceNumber + 1)
      // A segment that an outage cuts short ends before the end that was announced. Manifests list its true length then.
      let ends = listing.start &+ listing.duration == time || segment.isComplete && span.start &+ span.duration == time
      if next.map({ names($0, rendition, initVersion) && $0.span(of: track.id) == nil }) ?? true,
        segment.isComplete || span.announced != nil, ends
      {
        // While an outage lasts, what follows it is waited for.
        return isInterrupted && next?.isOutage == true ? nextSequenceNumber : segment.sequenceNumber + 1
      }
    }
    return nil
  }

  /// The rendition's track in the segment is that of the version. Playlists of recordings name it by any version that has it.
  private func names(_ segment: LiveSegment, _ rendition: Rendition, _ version: Int) -> Bool {
    (initVersion(rendition, of: segment)...segment.initVersion).contains(version)
  }

  /// Bits per second of the newest segment, as far as it exists.
  package var bitrateOfNewest: Int {
    guard let newest = segments.last, newest.duration.nanoseconds > 0 else { return 0 }
    return Int(Double(newest.memory.byteCount) * 8e9 / Double(newest.duration.nanoseconds))
  }

  /// Bits per second over about ten seconds of the newest complete segments; 0 before the first.
  var recentBitrate: Int {
    var bytes = 0
    var nanoseconds: Int64 = 0
    for segment in segments.reversed() where segment.isComplete && !segment.isOutage {
      bytes += segment.memory.byteCount
      nanoseconds &+= segment.duration.nanoseconds
      if nanoseconds >= 10_000_000_000 { break }
    }
    return nanoseconds > 0 ? Int(Double(bytes) * 8e9 / Double(nanoseconds)) : 0
  }
}

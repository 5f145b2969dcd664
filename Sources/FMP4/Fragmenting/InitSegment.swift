/// The tracks of the fragments that follow. `Boxes` writes it as `ftyp` and `moov` without media, in every layout
/// (ISO/IEC 14496-12 §8.2, 23000-19 §7.3).
public struct InitSegment: Sendable {
  /// 1 for the first of a stream. Each parameter change adds 1.
  public let version: Int
  /// Those of a `Segmenter` begin with the default tracks: the first of each kind.
  public let tracks: [TrackDescription]
  /// No discontinuity comes before it: the tracks that it shares with the one before go on.
  public let continues: Bool
  /// The version since which the default tracks are the same.
  package private(set) var defaultsVersion: Int
  private var versions: [TrackID: Int] = [:]

  /// An init segment of these tracks, for fragments that no `Segmenter` made.
  public init(version: Int, tracks: [TrackDescription], continues: Bool = false) {
    self.version = version
    self.tracks = tracks
    self.continues = continues
    defaultsVersion = version
  }

  /// The version since which a track is the same.
  package func version(of track: TrackID) -> Int { versions[track] ?? version }

  /// All versions that its tracks came with, alone or as default tracks.
  package var origins: Set<Int> { Set(tracks.map { version(of: $0.id) }).union([defaultsVersion]) }

  /// The same with some of its tracks alone.
  package func with(_ chosen: [TrackDescription]) -> InitSegment {
    var next = InitSegment(version: version, tracks: chosen, continues: continues)
    next.versions = versions
    if chosen.defaults == tracks.defaults { next.defaultsVersion = defaultsVersion }
    return next
  }

  /// The same after another one. If it continues that one, the tracks that stay the same keep their versions.
  package func following(_ former: InitSegment?) -> InitSegment {
    guard continues, let former else { return self }
    var next = self
    for track in tracks where former.tracks.contains(track) { next.versions[track.id] = former.version(of: track.id) }
    if tracks.defaults == former.tracks.defaults { next.defaultsVersion = former.defaultsVersion }
    return next
  }
}

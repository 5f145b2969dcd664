/// Reads the `moov` of weir's init segments and finished movies, and of other programs' files.
package enum MovieReader {
  package enum Kind {
    /// Has `mvex`: samples follow in fragments.
    case fragmented
    /// The sample tables are complete.
    case finished
  }

  /// Tracks of a `moov`, each with its first sample description.
  package static func read(_ movie: BoxView) throws(BoxError) -> (tracks: [TrackDescription], kind: Kind) {
    var tracks: [TrackDescription] = []
    for box in movie.boxes() where box.type == "trak" { tracks.append(try track(box)) }
    guard !tracks.isEmpty else { throw movie.error(.missing("trak")) }
    return (tracks, movie.first("mvex") == nil ? .finished : .fragmented)
  }

  /// Default values of fragment fields, per track.
  static func fragmentDefaults(
    _ movie: BoxView, tracks: [TrackDescription]
  ) -> [TrackID: FragmentReader.Defaults] {
    var defaults: [TrackID: FragmentReader.Defaults] = [:]
    guard let extends = movie.first("mvex") else { return [:] }
    for box in extends.boxes() where box.type == "trex" {
      if let (id, values) = try? MovieBoxes.trackExtends(box) { defaults[id] = values }
    }
    for (id, shift) in shifts(movie, tracks: tracks) { defaults[id, default: FragmentReader.Defaults()].shift = shift }
    return defaults
  }

  /// Offset of each track's presentation time from its samples' times, in ticks of the track. It comes from an edit
  /// list of the usual form: an empty edit, then the media from some time on. It applies to the fragments that follow.
  static func shifts(_ movie: BoxView, tracks: [TrackDescription]) -> [TrackID: Int64] {
    guard let movieScale = try? MovieBoxes.movieHeader(try movie.child("mvhd")).timescale else { return [:] }
    var shifts: [TrackID: Int64] = [:]
    for box in movie.boxes() where box.type == "trak" {
      guard let (id, _) = try? MovieBoxes.trackHeader(try box.child("tkhd")),
        let timescale = tracks.first(where: { $0.id == id })?.timescale,
        let edits = try? MovieBoxes.editList(try box.child("edts", "elst"), atMost: 2)
      else { continue }
      let before = edits.prefix { $0.mediaTime < 0 }.map { edit in
        MediaTime(ticks: Int64(truncatingIfNeeded: edit.duration), timescale: movieScale).rescaled(to: timescale)
      }
      let shift = before.reduce(0, &+) &- (edits.first { $0.mediaTime >= 0 }?.mediaTime ?? 0)
      if shift != 0 { shifts[id] = shift }
    }
    return shifts
  }

  /// Duration of a movie from its `mvhd`.
  static func duration(_ box: BoxView) throws(BoxError) -> MediaTime {
    let (timescale, duration) = try MovieBoxes.movieHeader(box)
    guard timescale > 0 else { throw box.error(.invalid) }
    return MediaTime(ticks: max(0, duration), timescale: timescale)
  }

  /// Track of a `trak` with its n-th sample description. The first is 1.
  static func track(_ box: BoxView, description number: Int = 1) throws(BoxError) -> TrackDescription {
    let media = try box.child("mdia")
    let descriptions = try media.child("minf", "stbl", "stsd")
    guard let entry = SampleTableReader.entries(descriptions).dropFirst(max(0, number - 1)).first(where: { _ in true })
    else {
      throw descriptions.error(.truncated)
    }
    let codec: Codec
    do throws(CodecError) {
      codec = try Codec(sampleEntry: entry)
    } catch {
      throw entry.error(.codec(error))
    }
    let (id, rotation) = try MovieBoxes.trackHeader(try box.child("tkhd"))
    let (timescale, language) = try MovieBoxes.mediaHeader(try media.child("mdhd"))
    return TrackDescription(
      id: id, codec: codec, timescale: timescale, language: language, role: TrackKind.role(box), rotation: rotation,
      statedColor: codec.statedColor(sampleEntry: entry))
  }
}

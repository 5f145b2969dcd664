internal import NIOCore

/// Reads the `moov` of our own init segments and finished movies.
enum MovieReader {
  enum Kind {
    /// With `mvex`: samples follow in fragments.
    case fragmented
    /// The tables are complete.
    case finished
  }

  /// The tracks of a `moov`, each with its first sample description; nil when it is not one of ours.
  static func read(_ movie: ByteBuffer) -> (tracks: [TrackDescription], kind: Kind)? {
    var tracks: [TrackDescription] = []
    for box in BoxReader(movie) where box.type == "trak" {
      guard let track = track(box.payload) else { return nil }
      tracks.append(track)
    }
    return tracks.isEmpty ? nil : (tracks, movie.firstBox("mvex") == nil ? .finished : .fragmented)
  }

  /// What the fragments of each track may leave out (`trex`, ISO/IEC 14496-12 §8.8.3).
  static func fragmentDefaults(
    _ movie: ByteBuffer, tracks: [TrackDescription]
  ) -> [TrackID: FragmentReader.Defaults] {
    var defaults: [TrackID: FragmentReader.Defaults] = [:]
    guard let extends = movie.firstBox("mvex") else { return [:] }
    for var box in BoxReader(extends) where box.type == "trex" {
      guard box.payload.readFullBoxHeader() != nil, let id = box.payload.readInteger(as: UInt32.self), id > 0,
        box.payload.skip(4), let duration = box.payload.readInteger(as: UInt32.self),
        let size = box.payload.readInteger(as: UInt32.self), let flags = box.payload.readInteger(as: UInt32.self)
      else { continue }
      defaults[TrackID(id)] = FragmentReader.Defaults(duration: duration, size: size, flags: flags)
    }
    for (id, shift) in shifts(movie, tracks: tracks) { defaults[id, default: FragmentReader.Defaults()].shift = shift }
    return defaults
  }

  /// By how much each track's presentation lies later than its samples say, in ticks of the track: what an edit list of
  /// the usual form (nothing for a while, then the media from a time on, §8.6.6) means for the fragments that follow.
  static func shifts(_ movie: ByteBuffer, tracks: [TrackDescription]) -> [TrackID: Int64] {
    var shifts: [TrackID: Int64] = [:]
    guard var header = movie.firstBox("mvhd"), let (version, _) = header.readFullBoxHeader(),
      header.skip(version == 1 ? 16 : 8), let movieScale = header.readInteger(as: UInt32.self)
    else { return [:] }
    for box in BoxReader(movie) where box.type == "trak" {
      guard var trackHeader = box.payload.firstBox("tkhd"), let (id, _) = self.trackHeader(&trackHeader),
        let timescale = tracks.first(where: { $0.id == id })?.timescale,
        var list = box.payload.firstBox("edts")?.firstBox("elst"), let (version, _) = list.readFullBoxHeader(),
        let count = list.readInteger(as: UInt32.self)
      else { continue }
      var shift: Int64 = 0
      for _ in 0..<min(count, 2) {
        let duration =
          version == 1 ? list.readInteger(as: Int64.self) : list.readInteger(as: UInt32.self).map(Int64.init)
        let time = version == 1 ? list.readInteger(as: Int64.self) : list.readInteger(as: Int32.self).map(Int64.init)
        guard let duration, let time, list.skip(4) else { break }
        if time < 0 {
          shift &+= MediaTime(ticks: duration, timescale: movieScale).rescaled(to: timescale)
        } else {
          shift &-= time
          break
        }
      }
      if shift != 0 { shifts[id] = shift }
    }
    return shifts
  }

  /// Length of a movie by its `mvhd` (ISO/IEC 14496-12 §8.2.2); nil when it cannot be read or tells none.
  static func duration(_ header: ByteBuffer) -> MediaTime? {
    var header = header
    guard let (version, _) = header.readFullBoxHeader(), header.skip(version == 1 ? 16 : 8),
      let timescale = header.readInteger(as: UInt32.self), timescale > 0
    else { return nil }
    let ticks = version == 1 ? header.readInteger(as: Int64.self) : header.readInteger(as: UInt32.self).map(Int64.init)
    return ticks.map { MediaTime(ticks: max(0, $0), timescale: timescale) }
  }

  /// A `trak` with its first sample description; nil when it is not one of ours.
  static func track(_ box: ByteBuffer) -> TrackDescription? {
    guard var header = box.firstBox("tkhd"), let media = box.firstBox("mdia"), var mediaHeader = media.firstBox("mdhd"),
      var descriptions = media.firstBox("minf")?.firstBox("stbl")?.firstBox("stsd"), descriptions.skip(8),
      let entry = BoxReader(descriptions).first(where: { _ in true }), let codec = try? Codec(sampleEntry: entry),
      let (id, rotation) = trackHeader(&header), let (timescale, language) = self.mediaHeader(&mediaHeader)
    else { return nil }
    return TrackDescription(
      id: id, codec: codec, timescale: timescale, language: language, rotation: rotation,
      statedColor: codec.statedColor(sampleEntry: entry))
  }

  /// `tkhd`, §8.3.2.
  private static func trackHeader(_ box: inout ByteBuffer) -> (TrackID, Rotation)? {
    guard let (version, _) = box.readFullBoxHeader(), box.skip(version == 1 ? 16 : 8),
      let id = box.readInteger(as: UInt32.self), id > 0, box.skip(version == 1 ? 12 : 8), box.skip(16),
      let a = box.readInteger(as: Int32.self), let b = box.readInteger(as: Int32.self)
    else { return nil }
    let rotation: Rotation =
      switch (a.signum(), b.signum()) {
      case (0, 1): .clockwise90
      case (-1, 0): .clockwise180
      case (0, -1): .clockwise270
      default: .none
      }
    return (TrackID(id), rotation)
  }

  /// `mdhd`, §8.4.2.
  private static func mediaHeader(_ box: inout ByteBuffer) -> (timescale: UInt32, language: String)? {
    guard let (version, _) = box.readFullBoxHeader(), box.skip(version == 1 ? 16 : 8),
      let timescale = box.readInteger(as: UInt32.self), timescale > 0, box.skip(version == 1 ? 8 : 4),
      let packed = box.readInteger(as: UInt16.self)
    else { return nil }
    let letters = [packed >> 10 & 31, packed >> 5 & 31, packed & 31].map { UInt8(truncatingIfNeeded: $0) &+ 0x60 }
    return (timescale, String(decoding: letters, as: UTF8.self))
  }
}

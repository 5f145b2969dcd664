public import NIOCore

/// What a movie says of itself; players show it. An empty text is left out.
public struct MovieMetadata: Sendable, Hashable {
  /// What it is called.
  public var title: String
  /// Time of recording as text: `2026-11-21T07:24:10Z`.
  public var date: String
  /// Name and version of the program.
  public var tool: String
  /// Its creation time (ISO/IEC 14496-12 §8.2.2), to the second.
  public var creation: WallTime

  /// The metadata with these texts and this time.
  public init(title: String, date: String, tool: String, creation: WallTime) {
    self.title = title
    self.date = date
    self.tool = tool
    self.creation = creation
  }
}

/// Writes the movie header of a finished recording. Placed before the fragmented file, it makes an ordinary movie of it.
public struct MovieBuilder: Sendable {
  private let tracks: [MovieTables.Track]
  private let metadata: MovieMetadata
  private let timeline: MovieTimeline
  /// More bytes between movie header and media, inside the `free` box that fills the gap. Players skip it.
  package var annex = ByteBuffer()

  /// Leaves out tracks without samples. Nil if no track has any. `shown` is the media time to show; nil for all of it.
  public init?(_ tables: MovieTables, metadata: MovieMetadata, showing shown: Range<MediaTime>? = nil) {
    tracks = tables.tracks.filter { $0.table.sampleCount > 0 }
    guard !tracks.isEmpty else { return nil }
    self.metadata = metadata
    timeline = MovieTimeline(tracks, showing: shown)
  }

  /// The length of the movie, as it states it.
  var duration: MediaTime {
    MediaTime(ticks: Int64(clamping: timeline.durations.max() ?? 0), timescale: timeline.timescale)
  }

  /// `ftyp`, `moov`, a `free` box as padding, and the header of one `mdat`. That `mdat` encloses the fragmented file's
  /// `contentLength` bytes, which follow. The length is a multiple of `blockSize`, so that the file system can insert
  /// the movie header without moving the media. Chunk offsets count from the start of the new file.
  public func movieHeader(contentLength: UInt64, blockSize: Int) -> ByteBuffer {
    let block = max(blockSize, 1)
    func whole(_ movieSize: Int) -> Int {
      (movieSize + 8 + annex.readableBytes + Self.mediaHeaderSize + block - 1) / block * block
    }
    // `capacity` is far too large for tables of similar samples, so a draft is written to get the real size. The final
    // movie header is never longer than the draft: with less before the media, offsets may take 4 bytes instead of 8.
    let draft = ByteBuffer.boxes(capacity: capacity + Self.fileTypeRoom) { out in
      fileType(&out)
      movie(&out, shift: UInt64(whole(capacity + Self.fileTypeRoom)))
    }
    let length = whole(draft.readableBytes)
    return .boxes(capacity: length) { out in
      fileType(&out)
      movie(&out, shift: UInt64(length))
      let padding = length - out.byteCount - Self.mediaHeaderSize
      out.box("free") {
        for byte in annex.readableBytesView { $0.u8(byte) }
        $0.zeros(max(0, padding - 8 - annex.readableBytes))
      }
      Self.mediaHeader(&out, contentLength)
    }
  }

  /// A movie header in two pieces, for space reserved before the fragments.
  package struct SplitHeader: Sendable, Hashable {
    /// `ftyp`, `moov` and the used part of a `free` box, which extends over the rest of the reserved space.
    package var front: ByteBuffer
    /// The `mdat` header at the end of the reserved space.
    package var mediaHeader: ByteBuffer

    /// Number of bytes to write.
    package var byteCount: Int { front.readableBytes + mediaHeader.readableBytes }
  }

  /// The movie header for a file with `room` reserved bytes before its first fragment. The bytes between the two pieces become
  /// part of the `free` box. At least `spare` bytes before the second piece stay unchanged. Nil if the space is too
  /// small.
  package func movieHeader(contentLength: UInt64, filling room: Int, sparing spare: Int) -> SplitHeader? {
    var front = ByteBuffer.boxes(capacity: capacity + Self.fileTypeRoom) { out in
      fileType(&out)
      movie(&out, shift: UInt64(max(0, room)))
    }
    let free = room - front.readableBytes - Self.mediaHeaderSize
    guard free >= 8 + annex.readableBytes + spare else { return nil }
    front.writeInteger(UInt32(clamping: free))
    front.writeString("free")
    front.writeImmutableBuffer(annex)
    return SplitHeader(
      front: front, mediaHeader: .boxes(capacity: Self.mediaHeaderSize) { Self.mediaHeader(&$0, contentLength) })
  }

  private static func mediaHeader(_ out: inout OutputRawSpan, _ contentLength: UInt64) {
    out.u32(1)  // a 64-bit size follows (§4.2.2)
    out.fourCC("mdat")
    out.u64(contentLength &+ UInt64(mediaHeaderSize))
  }

  /// Size of an `mdat` header with a 64-bit size, in bytes.
  package static let mediaHeaderSize = 16
  private static let fileTypeRoom = 64

  /// Most bytes of the `moov`.
  private var capacity: Int {
    let text = metadata.title.utf8.count + metadata.date.utf8.count + metadata.tool.utf8.count
    return tracks.reduce(1024 + text) { sum, track in
      let descriptions = track.descriptions.reduce(0) { $0 + $1.sampleEntryCapacity }
      return sum + 1024 + TrackKind.room + track.table.byteCount + descriptions
    }
  }

  /// §4.3.
  private func fileType(_ out: inout OutputRawSpan) {
    out.box("ftyp") {
      $0.fourCC("isom")
      $0.u32(0x200)  // minor_version
      for brand: FourCC in ["isom", "iso2", "mp41"] { $0.fourCC(brand) }
      for track in tracks {
        if let brand = track.descriptions.first?.codec.id.type.fileBrand { $0.fourCC(brand) }
      }
    }
  }

  /// §8.2.1.
  private func movie(_ out: inout OutputRawSpan, shift: UInt64) {
    let creation = UInt64(max(0, metadata.creation.seconds &+ MovieBoxes.secondsFrom1904To1970))
    let nextID = (tracks.compactMap { $0.descriptions.first?.id.rawValue }.max() ?? 0) &+ 1
    out.box("moov") { out in
      MovieBoxes.movieHeader(
        &out, timescale: timeline.timescale, duration: timeline.durations.max() ?? 0, nextTrackID: nextID,
        creation: creation)
      for index in tracks.indices { track(index, &out, shift: shift, creation: creation) }
      userData(&out)
    }
  }

  private func track(_ index: Int, _ out: inout OutputRawSpan, shift: UInt64, creation: UInt64) {
    guard let first = tracks[index].descriptions.first else { return }
    let table = tracks[index].table
    let place = MovieBoxes.Place(first, in: tracks.compactMap { $0.descriptions.first })
    MovieBoxes.track(
      &out, first, place, creation: creation, duration: timeline.durations[index],
      mediaDuration: UInt64(max(0, table.duration)), edits: timeline.edits[index]
    ) { $0.sampleTable(table, descriptions: tracks[index].descriptions, shift: shift) }
  }

  /// `udta` with the metadata that players show: title, date and tool. It uses QuickTime's `mdir` handler: each item
  /// holds a `data` box of type 1, UTF-8.
  private func userData(_ out: inout OutputRawSpan) {
    let items: [(type: FourCC, text: String)] = [
      (FourCC(rawValue: 0xA96E_616D), metadata.title), (FourCC(rawValue: 0xA964_6179), metadata.date),
      (FourCC(rawValue: 0xA974_6F6F), metadata.tool),
    ]
    out.box("udta") { out in
      out.fullBox("meta") { out in
        out.fullBox("hdlr") {
          $0.u32(0)  // pre_defined
          $0.fourCC("mdir")  // handler_type
          $0.fourCC("appl")
          $0.zeros(8)  // reserved
          $0.u8(0)  // name
        }
        out.box("ilst") { out in
          for item in items where !item.text.isEmpty {
            out.box(item.type) { out in
              out.box("data") {
                $0.u32(1)  // type: UTF-8
                $0.u32(0)  // locale: any
                $0.bytes(Array(item.text.utf8))
              }
            }
          }
        }
      }
    }
  }
}

@testable import FMP4
import NIOCore
import Support
import Testing

/// Offsets of fields are those of ISO/IEC 14496-12 §8, counted from the version of the box.
@Suite("Boxes of a moov")
struct MovieBoxesTests {
  private func trak(
    _ track: TrackDescription, _ place: MovieBoxes.Place = .alone, duration: UInt64 = 0, mediaDuration: UInt64 = 0,
    creation: UInt64 = 0, edits: [MovieBoxes.Edit] = []
  ) throws -> (box: Box, view: BoxView) {
    let buffer = ByteBuffer.boxes(capacity: 4096) {
      MovieBoxes.track(
        &$0, track, place, creation: creation, duration: duration, mediaDuration: mediaDuration, edits: edits
      ) { _ in }
    }
    let box = try #require(Box.parse(Array(buffer.readableBytesView))?.first)
    return (box, try #require(BoxReader(buffer).first { $0.type == "trak" }))
  }

  private func view(_ type: String, _ payload: [UInt8]) throws -> BoxView {
    try #require(BoxReader(ByteBuffer(bytes: BoxBytes.box(type, payload))).first { _ in true })
  }

  private static let edge = UInt64(UInt32.max)

  @Test(arguments: [(edge, 0 as UInt64, 0, 100), (edge + 1, 0, 1, 112), (0, edge, 0, 100), (0, edge + 1, 1, 112)])
  func `A movie's times take 64 bits beyond 32`(duration: UInt64, creation: UInt64, version: Int, size: Int) throws {
    let buffer = ByteBuffer.boxes(capacity: 128) {
      MovieBoxes.movieHeader(&$0, timescale: 30_000, duration: duration, nextTrackID: 3, creation: creation)
    }
    let box = try #require(Box.parse(Array(buffer.readableBytesView))?.first)
    #expect(box.payload.count == size && box.number(0, 1) == version && box.number(size - 4) == 3)
    let (at, width) = version == 1 ? (20, 8) : (12, 4)
    #expect(box.number(at) == 30_000 && box.number(at + 4, width) == Int(duration))
    #expect(box.number(4, width) == Int(creation) && box.number(4 + width, width) == Int(creation))
    let read = try MovieBoxes.movieHeader(try #require(BoxReader(buffer).first { _ in true }))
    #expect(read.timescale == 30_000 && read.duration == Int64(duration))
  }

  @Test func `A track of 64-bit durations is read as one of 32`() throws {
    let track = try SyntheticMedia.audio(TrackID(6))
    for duration in [Self.edge, Self.edge + 1] {
      let (box, view) = try trak(track, duration: duration, mediaDuration: duration)
      let version = duration > Self.edge ? 1 : 0
      #expect(try #require(box.first("tkhd")).number(0, 1) == version)
      #expect(try #require(box.first("mdia/mdhd")).number(0, 1) == version)
      #expect(try MovieBoxes.trackHeader(try view.child("tkhd")).0 == TrackID(6))
      #expect(try MovieBoxes.mediaHeader(try view.child("mdia", "mdhd")).timescale == 48_000)
    }
  }

  /// `alternate_group` is 0 where there is nothing to choose from (§8.3.2.3).
  @Test func `Of several tracks of a kind the first is enabled, and all are alternatives`() throws {
    let (video, audio) = (try SyntheticMedia.video(), try SyntheticMedia.audio())
    for (track, place, flags, group) in [
      (video, MovieBoxes.Place.alone, 3, 0), (video, .first, 3, 1), (video, .further, 2, 1), (audio, .alone, 3, 0),
      (audio, .first, 3, 2), (audio, .further, 2, 2),
    ] {
      let header = try #require(try trak(track, place).box.first("tkhd"))
      #expect(header.number(0) == flags && header.number(34, 2) == group, "\(track.kind) \(place)")
      #expect(header.number(36, 2) == (track.kind == .audio ? 0x0100 : 0), "volume")
    }
    let tracks = [video, audio, try SyntheticMedia.audio(TrackID(4))]
    #expect(tracks.map { MovieBoxes.Place($0, in: tracks) } == [.alone, .first, .further])
  }

  /// A turned video is moved back into view by its own width or height; tkhd states the size before the turn.
  @Test func `The matrix of a turned video leaves it in view`() throws {
    let one = 0x0001_0000
    let (width, height) = (320 << 16, 180 << 16)
    for (rotation, matrix, move) in [
      (Rotation.none, [one, 0, 0, one], [0, 0]), (.clockwise90, [0, one, -one, 0], [height, 0]),
      (.clockwise180, [-one, 0, 0, -one], [width, height]), (.clockwise270, [0, -one, one, 0], [0, width]),
      (.mirrored, [-one, 0, 0, one], [width, 0]),
    ] {
      var track = try SyntheticMedia.video()
      track.rotation = rotation
      let (box, view) = try trak(track)
      let header = try #require(box.first("tkhd"))
      let numbers = (0..<9).map { Int(Int32(truncatingIfNeeded: header.number(40 + 4 * $0))) }
      #expect(numbers == [matrix[0], matrix[1], 0, matrix[2], matrix[3], 0] + move + [0x4000_0000], "\(rotation)")
      #expect(header.number(76) == width && header.number(80) == height)
      #expect(try MovieBoxes.trackHeader(try view.child("tkhd")).1 == rotation)
    }
  }

  /// §8.4.2.3: three letters of ISO 639-2, each minus 0x60, in five bits.
  @Test(arguments: [
    ("und", 0x55C4 as UInt16), ("deu", 0x10B5), ("aaa", 0x0421), ("zzz", 0x6B5A), ("", 0x55C4), ("de", 0x55C4),
    ("deut", 0x55C4), ("DEU", 0x55C4), ("d`u", 0x55C4), ("d{u", 0x55C4), ("dé", 0x55C4),
  ])
  func `A language is three lower-case letters, or undetermined`(text: String, packed: UInt16) throws {
    #expect(MovieBoxes.packedLanguage(text) == packed)
    var track = try SyntheticMedia.audio()
    track.language = text
    let read = try MovieBoxes.mediaHeader(try trak(track).view.child("mdia", "mdhd")).language
    #expect(read == (packed == 0x55C4 ? "und" : text))
  }

  @Test func `An edit takes 64 bits where a number does not fit, and an empty one stays empty`() throws {
    let (small, large) = (Int64(Int32.max), Int64(Int32.max) + 1)
    for (edits, version) in [
      ([MovieBoxes.Edit(duration: Self.edge, mediaTime: small)], 0), ([.init(duration: 1, mediaTime: large)], 1),
      ([.init(duration: Self.edge + 1, mediaTime: 0)], 1),
      ([.init(duration: 500, mediaTime: -1), .init(duration: 9, mediaTime: 3)], 0),
      ([.init(duration: 500, mediaTime: -1), .init(duration: 9, mediaTime: large)], 1),
    ] {
      let (box, view) = try trak(try SyntheticMedia.video(), edits: edits)
      let list = try #require(box.first("edts/elst"))
      #expect(list.number(0, 1) == version && list.payload.count == 8 + edits.count * (version == 1 ? 20 : 12))
      let read = try view.child("edts", "elst")
      #expect(try MovieBoxes.editList(read, atMost: 9) == edits)
      #expect(try MovieBoxes.editList(read, atMost: 1) == Array(edits.prefix(1)))
    }
    #expect(try trak(try SyntheticMedia.video()).box.first("edts") == nil)
  }

  @Test func `A list that states more edits than it has is an error, not a shorter list`() throws {
    let edit = BoxBytes.u32(1) + BoxBytes.u32(0) + BoxBytes.u32(0x0001_0000)
    let list = try view("elst", BoxBytes.u32(0) + BoxBytes.u32(.max) + edit)
    #expect(try MovieBoxes.editList(list, atMost: 1).count == 1)
    #expect(throws: BoxError.self) { try MovieBoxes.editList(list, atMost: 2) }
  }

  @Test func `A track without a number or a timescale is refused`() throws {
    func header(_ id: UInt32) throws -> BoxView {
      try view("tkhd", [UInt8](repeating: 0, count: 12) + BoxBytes.u32(id) + [UInt8](repeating: 0, count: 68))
    }
    #expect(try MovieBoxes.trackHeader(header(1)).0 == TrackID(1))
    #expect(throws: BoxError.self) { try MovieBoxes.trackHeader(header(0)) }
    func media(_ timescale: UInt32) throws -> BoxView {
      try view("mdhd", [UInt8](repeating: 0, count: 12) + BoxBytes.u32(timescale) + [UInt8](repeating: 0, count: 8))
    }
    #expect(try MovieBoxes.mediaHeader(media(1)).timescale == 1)
    #expect(throws: BoxError.self) { try MovieBoxes.mediaHeader(media(0)) }
    let defaults = BoxBytes.u32(1) + BoxBytes.u32(10) + BoxBytes.u32(20) + BoxBytes.u32(30)
    let (id, read) = try MovieBoxes.trackExtends(try view("trex", BoxBytes.u32(0) + BoxBytes.u32(5) + defaults))
    #expect(id == TrackID(5) && (read.duration, read.size, read.flags) == (10, 20, 30))
    #expect(throws: BoxError.self) {
      try MovieBoxes.trackExtends(try view("trex", BoxBytes.u32(0) + BoxBytes.u32(0) + defaults))
    }
  }

  @Test func `A header that ends within a field is an error at every byte`() throws {
    let payload = try trak(try SyntheticMedia.video()).box.first("tkhd")?.payload ?? []
    // Behind the matrix's fourth number nothing is read.
    let read = 40 + 5 * 4
    #expect(payload.count == 84)
    for count in 0..<read {
      let cut = try view("tkhd", Array(payload.prefix(count)))
      #expect(throws: BoxError.self, "\(count)") { try MovieBoxes.trackHeader(cut) }
    }
    #expect(try MovieBoxes.trackHeader(try view("tkhd", Array(payload.prefix(read)))).0 == .video)
  }
}

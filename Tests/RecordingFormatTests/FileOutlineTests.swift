import FMP4
import NIOCore
@testable import RecordingFormat
import Support
import Testing

@Suite("Where the parts of a recording's file lie")
struct FileOutlineTests {
  /// Gives bytes of a file in memory, fewer where it ends.
  private func source(_ bytes: [UInt8]) -> (UInt64, Int) -> ByteBuffer {
    { offset, length in ByteBuffer(bytes: bytes.dropFirst(Int(clamping: offset)).prefix(length)) }
  }

  private func outline(_ bytes: [UInt8]) -> FileOutline? {
    FileOutline(size: UInt64(bytes.count), source(bytes))
  }

  private let fileType = BoxBytes.box("ftyp", Array("isom".utf8) + BoxBytes.u32(512))
  private func finished(annex: [UInt8]? = [1, 2, 3], content: [UInt8]) -> [UInt8] {
    fileType + BoxBytes.box("moov", [9]) + (annex.map { BoxBytes.box("free", $0) } ?? [])
      + BoxBytes.box("mdat", content)
  }

  @Test func `A fragmented file is all content`() throws {
    let recording = SyntheticRecording([try SyntheticMedia.video()], seconds: 1)
    let found = try #require(outline(recording.bytes))
    #expect(found.form == .fragmented && found.content == 0..<UInt64(recording.bytes.count) && found.annex == nil)
    let beginning = Array(recording.bytes.prefix(recording.headLength))
    #expect(outline(beginning)?.form == .fragmented, "a movie to which no fragment has come yet")
  }

  @Test func `A finished file's content is what its media box takes in`() throws {
    let inner = fileType + BoxBytes.box("moov")
    let found = try #require(outline(finished(content: inner)))
    // ftyp of 16 bytes, moov of 9, free of 11, and the header of mdat.
    #expect(found == (try #require(outline(finished(content: inner)))))
    #expect(found.form == .finished && found.annex == 33..<36 && found.content == 44..<UInt64(44 + inner.count))
    let bare = try #require(outline(finished(annex: nil, content: BoxBytes.box("moov") + [0])))
    #expect(bare.form == .finished && bare.annex == nil && bare.content == 33..<42)
  }

  @Test func `Files that weir did not write have no outline`() {
    #expect(outline(finished(content: BoxBytes.box("free"))) == nil)
    #expect(outline(finished(content: [])) == nil)
    #expect(outline([]) == nil && outline(fileType) == nil)
    #expect(outline(BoxBytes.box("mdat", fileType)) == nil, "media before a movie")
    #expect(outline(fileType + BoxBytes.box("moov", [1, 2]).dropLast()) == nil, "a movie that is cut short")
  }

  @Test func `Room that is kept in front is no content`() throws {
    let length = MoovReservation.unit
    let free = BoxBytes.u32(UInt32(length - fileType.count)) + Array("free".utf8)
    let mark = Array("weir-fr1".utf8) + BoxBytes.u64(UInt64(length)) + [UInt8](repeating: 0, count: 16)
    let hole = [UInt8](repeating: 0, count: length - fileType.count - free.count - mark.count)
    let rest = BoxBytes.box("moov", [1]) + BoxBytes.box("moof")
    let bytes = fileType + free + hole + mark + rest
    #expect(try #require(outline(bytes)).content == UInt64(length)..<UInt64(bytes.count))
    var unmarked = bytes
    unmarked[length - 32] = UInt8(ascii: "x")
    #expect(try #require(outline(unmarked)).content == 0..<UInt64(bytes.count), "another program's free box")
  }

  @Test func `A file that is cut short anywhere has an outline within it or none`() {
    let whole = finished(content: fileType + BoxBytes.box("moov"))
    for length in 0..<whole.count {
      guard let found = outline(Array(whole.prefix(length))) else { continue }
      #expect(found.content.upperBound <= UInt64(length))
    }
  }

  @Test func `What the source throws is passed on`() {
    struct Broken: Error {}
    #expect(throws: Broken.self) {
      _ = try FileOutline(size: 100) { (_: UInt64, _: Int) throws(Broken) -> ByteBuffer in throw Broken() }
    }
  }

  // MARK: The parts alone

  @Test func `The annex is the free box behind the movie, within eight boxes`() {
    func annex(_ bytes: [UInt8]) -> Range<UInt64>? { FileOutline.annex(size: UInt64(bytes.count), source(bytes)) }
    let (movie, free) = (BoxBytes.box("moov"), BoxBytes.box("free", [1, 2]))
    #expect(annex(fileType + movie + free) == 32..<34)
    #expect(annex(fileType + free + movie) == nil, "reserved space is none")
    #expect(annex(movie + BoxBytes.box("mdat") + free) == nil)
    #expect(annex(movie + BoxBytes.box("moof") + free) == nil)
    let skip = BoxBytes.box("skip")
    #expect(annex(movie + Array(repeating: skip, count: 6).joined() + free) == 64..<66)
    #expect(annex(movie + Array(repeating: skip, count: 7).joined() + free) == nil)
  }

  @Test func `The movie is given whole, unless it is too far or too large`() {
    let bytes = fileType + BoxBytes.box("free") + BoxBytes.box("moov", [1, 2, 3, 4])
    let size = UInt64(bytes.count)
    #expect(FileOutline.movie(size: size, atMost: 12, source(bytes))?.payload == ByteBuffer(bytes: [1, 2, 3, 4]))
    #expect(FileOutline.movie(size: size, atMost: 11, source(bytes)) == nil)
    #expect(FileOutline.movie(size: size, within: 3, atMost: 12, source(bytes)) != nil)
    #expect(FileOutline.movie(size: size, within: 2, atMost: 12, source(bytes)) == nil)
    #expect(FileOutline.movie(size: size - 1, atMost: 12, source(bytes)) == nil)
  }

  @Test func `Boxes that may stand behind the fragments are passed`() {
    let trailers = ["mfra", "free", "skip", "uuid"].flatMap { BoxBytes.box($0, [0]) }
    let bytes = [7, 7] + trailers + BoxBytes.box("moof")
    let end = { (bytes: [UInt8]) in FileOutline.endOfTrailers(in: 2..<UInt64(bytes.count), self.source(bytes)) }
    #expect(end(bytes) == 38)
    #expect(end([7, 7] + trailers) == 38)
    #expect(end([7, 7]) == 2)
    #expect(end([7, 7] + trailers.dropLast()) == 29, "the last is not whole")
  }

  @Test func `A file begins with a type of some brands and a box that may follow`() {
    func begins(_ bytes: [UInt8], end: Int? = nil) -> Bool {
      FileOutline.begins(
        at: 0, before: UInt64(end ?? bytes.count), with: ByteBuffer(bytes: bytes.prefix(16)), source(bytes))
    }
    #expect(begins(fileType + BoxBytes.box("moov")))
    #expect(begins(fileType + BoxBytes.box("free", [0])))
    #expect(!begins(fileType + BoxBytes.box("trak")), "a box of another level")
    #expect(!begins(fileType), "nothing follows")
    #expect(!begins(fileType + BoxBytes.box("moov"), end: 23), "it leaves the stretch")
    #expect(!begins(BoxBytes.box("styp", Array(fileType.suffix(8))) + BoxBytes.box("moov")))
    #expect(!begins(BoxBytes.box("ftyp", [0x1F, 0x20, 0x20, 0x20, 0, 0, 0, 0]) + BoxBytes.box("moov")), "no text")
    #expect(!begins(BoxBytes.box("ftyp", Array("isom".utf8)) + BoxBytes.box("moov")), "12 bytes")
    let large = { (size: Int) in
      BoxBytes.box("ftyp", Array("isom".utf8) + [UInt8](repeating: 0, count: size - 12)) + BoxBytes.box("moov")
    }
    #expect(begins(large(1024)) && !begins(large(1028)) && !begins(large(1023)))
  }
}

@testable import FMP4
import NIOCore
import Testing

@Suite struct BoxWalkTests {
  private func box(_ type: String, _ payload: [UInt8], size: UInt32? = nil) -> [UInt8] {
    let size = size ?? UInt32(payload.count + 8)
    return [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: size >> $0) } + Array(type.utf8) + payload
  }

  private func long(_ type: String, _ payload: [UInt8], size: UInt64? = nil) -> [UInt8] {
    let size = size ?? UInt64(payload.count + 16)
    let bytes = stride(from: 56, through: 0, by: -8).map { UInt8(truncatingIfNeeded: size >> UInt64($0)) }
    return box(type, bytes + payload, size: 1)
  }

  /// What a walk tells that enters `moov` and `trak`, and wants the payload of `mvhd`; and why it ended.
  private func walk(
    _ file: [UInt8], in stretch: Range<UInt64>? = nil, block: Int = 1, most: Int = .max
  ) -> (told: [String], error: BoxError?) {
    let stretch = stretch ?? 0..<UInt64(file.count)
    var walk = BoxWalk(stretch, block: block)
    var told: [String] = []
    do throws(BoxError) {
      for _ in 0...4 * file.count {
        switch try walk.next() {
        case .read(let offset, let length):
          guard length > 0, offset >= stretch.lowerBound, offset + UInt64(length) <= stretch.upperBound else {
            Issue.record("it reads \(length) bytes at \(offset)")
            return (told, nil)
          }
          walk.receive(ByteBuffer(bytes: file.dropFirst(Int(clamping: offset)).prefix(min(length, most))))
        case .box(let box):
          told.append("\(box.type) \(box.range)")
          if ["moov", "trak"].contains(box.type) { walk.enter() }
          if box.type == "mvhd" { walk.want() }
        case .payload(let box): told.append("\(box.path) \(Array(box.payload.readableBytesView))")
        case .end: return (told, nil)
        }
      }
    } catch {
      guard case .end? = try? walk.next() else {
        Issue.record("it goes on behind \(error)")
        return (told, error)
      }
      return (told, error)
    }
    Issue.record("it does not come to an end")
    return (told, nil)
  }

  private var movie: [UInt8] {
    box("ftyp", [1, 2, 3, 4])
      + box("moov", box("mvhd", [5, 6]) + box("trak", box("tkhd", []) + [0, 0, 0, 0]) + long("udta", [7]))
      + long("mdat", [8]) + box("free", [])
  }

  @Test(arguments: [0, 1, 16, 17, 40, 4096])
  func everyBoxIsToldOnceHoweverManyBytesComeAtOnce(_ block: Int) {
    let (told, error) = walk(movie, block: block)
    #expect(
      told == [
        "ftyp 0..<12", "moov 12..<67", "mvhd 20..<30", "[moov, mvhd] [5, 6]", "trak 30..<50", "tkhd 38..<46",
        "udta 50..<67", "mdat 67..<84", "free 84..<92",
      ])
    #expect(error == nil)
  }

  @Test func aStretchIsWalkedAlone() {
    #expect(walk(movie, in: 20..<67).told.first == "mvhd 20..<30")
    #expect(walk(movie, in: 67..<84).told == ["mdat 67..<84"])
    #expect(walk([]).told == [] && walk([0, 0, 0, 8, 0x66, 0x72, 0x65]).error == nil)
  }

  @Test func aFileThatIsCutShortSaysWhere() {
    for length in 0..<movie.count {
      let (_, error) = walk(Array(movie[..<length]))
      if let error { #expect(error.offset < UInt64(length), "\(length): \(error)") }
    }
    #expect(walk(Array(movie[..<11])).error == BoxError(.cut(size: 12, room: 11), ["ftyp"], at: 0))
    // The disk has less than was said.
    #expect(walk(movie, most: 15).error == BoxError(.truncated, [], at: 0))
  }

  @Test func noBoxReachesOutOfTheOneThatHoldsIt() {
    let inner = box("tkhd", [0, 0], size: 11)
    #expect(
      walk(box("moov", box("trak", inner)) + box("free", [])).error
        == BoxError(.cut(size: 11, room: 10), ["moov", "trak", "tkhd"], at: 16))
    // Without an end of its own it has that of the other.
    let open = box("moov", box("trak", box("tkhd", [0, 0], size: 0))) + box("free", [])
    #expect(walk(open).told == ["moov 0..<26", "trak 8..<26", "tkhd 16..<26", "free 26..<34"])
  }

  @Test(
    arguments: [
      (0, nil), (2, .small(size: 2)), (7, .small(size: 7)), (8, nil), (15, nil), (16, nil), (17, nil),
      (18, .cut(size: 18, room: 17)), (.max, .cut(size: 1 << 32 - 1, room: 17)),
    ] as [(UInt32, BoxError.Code?)])
  func sizesOf32Bits(_ size: UInt32, _ code: BoxError.Code?) {
    let error = walk(box("skip", [0, 0, 0, 8, 0, 0, 0, 8, 0x66], size: size)).error
    #expect(error?.path != ["skip"] || error?.code == code, "\(size): \(String(describing: error))")
    if code != nil { #expect(error == code.map { BoxError($0, ["skip"], at: 0) }) }
  }

  @Test(arguments: [0, 1, 7, 8, 15, 16, 17, 18, 1 << 32 - 1, 1 << 63 - 1, 1 << 63, .max - 15, .max] as [UInt64])
  func sizesOf64Bits(_ size: UInt64) {
    let file = box("free", []) + box("moov", long("trak", [0], size: size))
    let code: BoxError.Code? = size < 16 ? .small(size: size) : size > 17 ? .cut(size: size, room: 17) : nil
    #expect(walk(file).error == code.map { BoxError($0, ["moov", "trak"], at: 16) })
    // Where there is room for it nothing overflows.
    let (told, error) = walk(long("skip", [], size: size), in: 0..<UInt64.max)
    #expect(size < 16 ? error?.code == .small(size: size) : told == ["skip 0..<\(size)"])
  }

  @Test func asMuchOfAPayloadIsGivenAsIsWanted() throws {
    var walk = BoxWalk(0..<UInt64(movie.count))
    func read(_ offset: UInt64, _ length: Int) -> ByteBuffer {
      ByteBuffer(bytes: movie.dropFirst(Int(offset)).prefix(length))
    }
    #expect(walk.box(read)?.type == "ftyp")
    #expect(walk.payload(read)?.payload == ByteBuffer(bytes: [1, 2, 3, 4]))
    #expect(walk.box(read)?.type == "moov")
    walk.want(3)
    guard case .payload(let view) = try walk.next() else {
      Issue.record("it was read already")
      return
    }
    #expect(view.payload.readableBytes == 3 && !view.isWhole)
    #expect(throws: BoxError(.large(size: 55), ["moov"], at: 12)) { try walk.wantWhole(atMost: 54) }
    try walk.wantWhole(atMost: 55)
    #expect(walk.payload(read)?.isWhole == true)
    #expect(walk.box(read)?.type == "mdat" && walk.position == 67)
    walk.skip(to: 84)
    #expect(walk.box(read)?.type == "free" && walk.box(read) == nil && walk.failure == nil)
  }

  @Test func fieldsEndWhereTheirBoxDoes() throws {
    let file = ByteBuffer(bytes: box("moov", box("mvhd", [1, 0, 0, 7, 0, 0])))
    let header = try #require(BoxReader(file).first { _ in true }).child("mvhd")
    var fields = BoxFields(header)
    let (version, flags) = try fields.versionAndFlags()
    #expect(version == 1 && flags == 7)
    #expect(throws: BoxError(.truncated, ["moov", "mvhd"], at: 20)) { try fields.u32() }
    #expect(try fields.u16() == 0)
    #expect(throws: BoxError(.missing("tkhd"), ["moov", "mvhd"], at: 8)) { try header.child("tkhd") }
  }
}

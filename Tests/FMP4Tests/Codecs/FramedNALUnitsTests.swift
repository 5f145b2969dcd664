import FMP4
import NIOCore
import Testing

@Suite("NAL units of containers, framed or not")
struct FramedNALUnitsTests {
  private func read(_ bytes: [UInt8], lengthSize: Int = 4) -> FramedNALUnits {
    // Offsets count from the readable bytes.
    var buffer = ByteBuffer(bytes: [0, 0, 1] + bytes)
    buffer.moveReaderIndex(forwardBy: 3)
    return FramedNALUnits(buffer, of: H264.Configuration.self, lengthSize: lengthSize)
  }

  private func bytes(_ units: FramedNALUnits) -> [UInt8] { Array(units.payload.readableBytesView) }

  private let slice: [UInt8] = [0x65, 0x88, 1]
  private let later: [UInt8] = [0x65, 0x08, 1]
  private let message: [UInt8] = [0x06, 5, 1, 9, 0x80]

  private func framed(_ units: [[UInt8]], _ lengthSize: Int = 4) -> [UInt8] {
    units.flatMap { [UInt8](repeating: 0, count: lengthSize - 1) + [UInt8($0.count)] + $0 }
  }

  @Test(arguments: [1, 2, 4]) func aProperPayloadStaysAsItIs(_ lengthSize: Int) {
    let payload = framed([message, slice, later], lengthSize)
    let units = read(payload, lengthSize: lengthSize)
    #expect(bytes(units) == payload && units.hasSlice && units.beginning == .leading && !units.isEmpty)
  }

  @Test func whatBeginsAFrameIsTold() {
    #expect(read(framed([slice, later])).beginning == .first)
    #expect(read(framed([later])).beginning == .slice && read(framed([later])).hasSlice)
    #expect(read(framed([message])).beginning == .leading && !read(framed([message])).hasSlice)
    // Filler belongs to no frame that begins.
    #expect(read(framed([[12, 255, 128]])).beginning == nil)
  }

  @Test(arguments: [1, 2, 4]) func startCodesBecomeLengths(_ lengthSize: Int) {
    let codes = [[0, 0, 0, 1], [0, 0, 1]] as [[UInt8]]
    for code in codes {
      let stream = code + message + code + slice + code + later
      if lengthSize == 4 { #expect(bytes(read(stream)) == framed([message, slice, later])) }
      let within = framed([message + code + slice + code + later], lengthSize)
      #expect(bytes(read(within, lengthSize: lengthSize)) == framed([message, slice, later], lengthSize))
    }
  }

  /// Written without emulation prevention. Start codes behind the messages stay what they are.
  @Test(arguments: [false, true]) func bytesWithinAMessageAreNoStartCode(_ isHEVC: Bool) {
    let codec: any CodecConfiguration.Type = isHEVC ? HEVC.Configuration.self : H264.Configuration.self
    let picture: [UInt8] = isHEVC ? [0x26, 1, 0xAF, 1] : slice
    let raw: [UInt8] = [0, 0, 1] + picture + [0, 0, 0, 1, 9]
    let header: [UInt8] = isHEVC ? [0x4E, 1] : [0x06]
    let long = [UInt8](repeating: 7, count: 250)
    let messages = [
      [5, UInt8(raw.count)] + raw, [1, 1, 9, 5, UInt8(raw.count)] + raw, [0xFF, 3, UInt8(raw.count)] + raw,
      [5, 0xFF, UInt8(raw.count + 250 - 255)] + raw + long,
    ]
    for message in messages {
      let unit = header + message + [0x80]
      let payload = ByteBuffer(bytes: [0, 0, UInt8(unit.count >> 8), UInt8(unit.count & 255)] + unit)
      #expect(FramedNALUnits(payload, of: codec, lengthSize: 4).payload == payload, "\(message)")
      let frame = ByteBuffer(bytes: Array(payload.readableBytesView) + framed([picture]))
      #expect(FramedNALUnits(frame, of: codec, lengthSize: 4).payload == frame, "\(message)")
      let mixed = unit + [0, 0, 1] + picture
      let cut = FramedNALUnits(
        ByteBuffer(bytes: [0, 0, UInt8(mixed.count >> 8), UInt8(mixed.count & 255)] + mixed), of: codec, lengthSize: 4)
      #expect(cut.hasSlice && cut.payload == frame, "\(message)")
    }
  }

  @Test func bytesBehindTheLastUnitAreLeftOut() {
    for rest in [[0], [0, 0], [0, 0, 0], [9, 9, 9, 9, 9], [0, 0, 0, 200, 1]] as [[UInt8]] {
      #expect(bytes(read(framed([message, slice]) + rest)) == framed([message, slice]), "\(rest)")
    }
    // The rest of a payload has start codes.
    let mixed = framed([message]) + [0, 0, 0, 1] + slice + [0, 0, 1] + later
    #expect(bytes(read(mixed)) == framed([message, slice, later]))
  }

  private static let parameters: [[UInt8]] = [[0x67, 0x64, 0, 0x1F, 0xAC], [0x68, 0xEE, 0x3C]]
  private static let rest = [UInt8](repeating: 7, count: 20_000)

  /// It looks like a length of 256 to 511, which is there.
  @Test(
    arguments: [
      (false, [[0x65, 0x88] + rest]), (false, [[9, 0x10]] + parameters + [[0x65, 0x88] + rest]),
      (false, parameters + [[0x65, 0x88] + rest]),
      (false, [[6, 5, 0xFF, 0xFF, 0xA0] + rest.prefix(671), [0x41, 0x9A] + rest]),
      (false, [[6, 1, 1, 9, 0x80], [0x41, 0x9A] + rest]), (true, [[0x26, 1, 0xAF] + rest]),
      (true, [[0x46, 1, 0x50], [2, 1, 0xD0] + rest]),
    ] as [(Bool, [[UInt8]])]) func aStartCodeOfThreeBytesInFrontIsNoLength(_ isHEVC: Bool, _ units: [[UInt8]])
  {
    let payload = ByteBuffer(bytes: units.flatMap { [0, 0, 1] + $0 })
    let codec: any CodecConfiguration.Type = isHEVC ? HEVC.Configuration.self : H264.Configuration.self
    let found = FramedNALUnits(payload, of: codec, lengthSize: 4)
    #expect(
      found.hasSlice && bytes(found) == units.flatMap { [0, 0, UInt8($0.count >> 8), UInt8($0.count & 255)] + $0 })
  }

  @Test(arguments: [0x01, 0x06, 0x09, 0x41, 0x65, 0x67] as [UInt8]) func aLengthThatLooksLikeAStartCodeIsOne(
    _ low: UInt8
  ) {
    for header in [0x01, 0x41, 0x65, 0x67, 0x06] as [UInt8] {
      let proper = [0, 0, 1, low, header] + [UInt8](repeating: 7, count: Int(low) + 255) + framed([slice])
      for rest in [[], [0], [9, 9, 9, 9, 9]] as [[UInt8]] { #expect(bytes(read(proper + rest)) == proper, "\(header)") }
    }
  }

  @Test func whatCannotBeReadStaysAsItIs() {
    for payload in [[], [1], [0x7F, 0, 0, 5, 1, 2], [0, 0, 0, 0]] as [[UInt8]] {
      let units = read(payload)
      #expect(bytes(units) == payload && units.isEmpty && units.beginning == nil)
    }
  }

  @Test func anyBytesAreRead() {
    var state: UInt32 = 7
    func roll(_ sides: UInt32) -> Int {
      state = state &* 1_664_525 &+ 1_013_904_223
      return Int((state >> 8) % sides)
    }
    for _ in 0..<2000 {
      // Mostly zeros and ones, as lengths and start codes have.
      let payload: [UInt8] = (0..<roll(40)).map { _ in [0, 0, 1, 2, 0x65, 0x88, UInt8(roll(256))][roll(7)] }
      for lengthSize in [1, 2, 4] {
        let units = read(payload, lengthSize: lengthSize)
        #expect(units.payload.readableBytes <= payload.count + 4 * payload.count)
      }
      _ = AAC.framesWithADTS(in: ByteBuffer(bytes: [0xFF, 0xF1] + payload), most: 2)
    }
  }

  @Test func framesWithADTSComeOutBare() throws {
    let header: [UInt8] = [0xFF, 0xF1, 0x4C, 0x80, 0x01, 0x5F, 0xFC]
    let payload = header + [1, 2, 3] + header + [4, 5, 6, 0xFF]
    let (frames, hasMore) = try #require(AAC.framesWithADTS(in: ByteBuffer(bytes: payload), most: 2))
    let one = try #require(AAC.framesWithADTS(in: ByteBuffer(bytes: payload), most: 1))
    #expect(!hasMore && one.frames.count == 1 && one.hasMore)
    #expect(frames.map { Array($0.frame.readableBytesView) } == [[1, 2, 3], [4, 5, 6]])
    #expect(frames.allSatisfy { $0.record == [0x11, 0x90] })
    // Bare ones, and those that are cut off.
    #expect(AAC.framesWithADTS(in: ByteBuffer(bytes: [0x21, 0x10, 4]), most: 2) == nil)
    #expect(AAC.framesWithADTS(in: ByteBuffer(bytes: header + [1, 2]), most: 2) == nil)
  }
}

import FMP4
import NIOCore
import Support
import Testing

@Suite struct AccessUnitTests {
  private let idr: [UInt8] = [0x65, 0x88, 0x84, 0x00, 0x01]
  private let slice: [UInt8] = [0x41, 0x9A, 0x22]
  private let sei: [UInt8] = [0x06, 0x05, 0x01, 0xFF, 0x80]
  private let delimiter: [UInt8] = [0x09, 0x10]
  private let sps: [UInt8] = [0x67, 0x42, 0xC0, 0x0D]
  private let pps: [UInt8] = [0x68, 0xCE]

  @Test func delimitersAndParameterSetsLeaveTheSample() throws {
    let unit = try H264.accessUnit(prefixed([delimiter, sps, pps, sei, idr], lengthSize: 4), lengthSize: 4)
    #expect(unit.payload == prefixed([sei, idr], lengthSize: 4))
    #expect(unit.isSync)
    #expect(unit.parameterSets == [sps, pps])
  }

  @Test(arguments: [1, 2, 4]) func lengthsBecomeFourBytes(_ lengthSize: Int) throws {
    let unit = try H264.accessUnit(prefixed([sei, slice], lengthSize: lengthSize), lengthSize: lengthSize)
    #expect(unit.payload == prefixed([sei, slice], lengthSize: 4))
    #expect(!unit.isSync)
    #expect(unit.parameterSets.isEmpty)
  }

  @Test func aSampleThatNeedsNoChangeIsTheSameBuffer() throws {
    var payload = ByteBuffer()
    payload.writeBytes([0xEE, 0xEE])
    payload.writeImmutableBuffer(prefixed([sei, idr], lengthSize: 4))
    payload.moveReaderIndex(forwardBy: 2)
    let before = payload.withUnsafeReadableBytes { $0.baseAddress }
    let unit = try H264.accessUnit(payload, lengthSize: 4)
    let after = unit.payload.withUnsafeReadableBytes { $0.baseAddress }
    #expect(before == after)
    #expect(unit.isSync)
  }

  @Test func anAccessUnitOfParameterSetsOnlyLeavesNothing() throws {
    let unit = try H264.accessUnit(prefixed([sps, pps], lengthSize: 4), lengthSize: 4)
    #expect(unit.payload.readableBytes == 0)
    #expect(unit.parameterSets == [sps, pps])
    #expect(try H264.accessUnit(ByteBuffer(), lengthSize: 4).payload.readableBytes == 0)
  }

  /// x264 with open-gop=1: its own message, and a recovery point of no frames before the slice of a frame that is no IDR.
  @Test func decodingMayStartAtARecoveryPoint() throws {
    let message: [UInt8] = [0x06, 0x05, 0x03, 0xAA, 0xBB, 0xCC, 0x06, 0x01, 0xC4, 0x80]
    #expect(try H264.accessUnit(prefixed([message, slice], lengthSize: 4), lengthSize: 4).isSync)
    // ue(v) of 1: whole only a frame later.
    let gradual: [UInt8] = [0x06, 0x06, 0x01, 0x54, 0x80]
    #expect(try !H264.accessUnit(prefixed([gradual, slice], lengthSize: 4), lengthSize: 4).isSync)
    for length in 1..<message.count - 2 {
      #expect(
        try !H264.accessUnit(prefixed([Array(message.prefix(length)), slice], lengthSize: 4), lengthSize: 4).isSync)
    }
    let endless: [UInt8] = [0x06] + Array(repeating: 0xFF, count: 4000)
    #expect(try !H264.accessUnit(prefixed([endless, slice], lengthSize: 4), lengthSize: 4).isSync)
    #expect(H264.accessUnit(annexB: ByteBuffer(bytes: [0, 0, 0, 1] + message + [0, 0, 1] + slice)).isSync)
  }

  @Test func messagesTellOfHighDynamicRange() throws {
    // x265 --master-display "G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50)" --max-cll "1000,400".
    let messages = SyntheticMedia.hex(
      "4E01 8918 33C2 86C4 1D4C 0BB8 84D0 3E80 3D13 4042 00989680 00000300 32 9004 03E8 0190 80")
    let frame: [UInt8] = [0x26, 0x01, 0xAF]
    let unit = try HEVC.accessUnit(prefixed([messages, frame], lengthSize: 4), lengthSize: 4, temporalLayers: 1)
    let display = try #require(unit.masteringDisplay)
    #expect(display.green == MasteringDisplay.Chromaticity(x: 13_250, y: 34_500))
    #expect(display.red == MasteringDisplay.Chromaticity(x: 34_000, y: 16_000))
    #expect(display.maximumLuminance == 10_000_000 && display.minimumLuminance == 50)
    #expect(unit.lightLevel == ContentLightLevel(maximum: 1000, maximumAverage: 400))
    let cut = try HEVC.accessUnit(
      prefixed([Array(messages.prefix(20)), frame], lengthSize: 4), lengthSize: 4, temporalLayers: 1)
    #expect(cut.masteringDisplay == nil && cut.isSync)
  }

  @Test func emptyUnitsAreDropped() throws {
    let unit = try H264.accessUnit(prefixed([[], slice, []], lengthSize: 4), lengthSize: 4)
    #expect(unit.payload == prefixed([slice], lengthSize: 4))
  }

  @Test(arguments: 1..<18) func aSampleCutShortIsRefused(_ length: Int) throws {
    let whole = prefixed([sei, idr], lengthSize: 4)
    // After nine bytes the first unit is whole, and nothing tells that a second was meant.
    guard length != 9, let cut = whole.getSlice(at: 0, length: length) else { return }
    #expect(throws: CodecError.self) { try H264.accessUnit(cut, lengthSize: 4) }
  }

  @Test func lengthsOfThreeBytesAreRefused() {
    #expect(throws: CodecError.self) { try H264.accessUnit(ByteBuffer(), lengthSize: 3) }
  }

  @Test(arguments: [[0, 0, 1], [0, 0, 0, 1]] as [[UInt8]])
  func startCodesOfBothLengthsBecomeLengths(_ code: [UInt8]) {
    let stream = [delimiter, sps, pps, sei, idr].flatMap { code + $0 }
    let unit = H264.accessUnit(annexB: ByteBuffer(bytes: stream + [0, 0]))
    #expect(unit.payload == prefixed([sei, idr], lengthSize: 4))
    #expect(unit.isSync)
    #expect(unit.parameterSets == [sps, pps])
  }

  @Test func bytesWithoutAStartCodeHoldNoUnit() {
    #expect(H264.accessUnit(annexB: ByteBuffer(bytes: [1, 2, 3, 0, 0])).payload.readableBytes == 0)
    #expect(H264.accessUnit(annexB: ByteBuffer(bytes: [0, 0, 1])).payload.readableBytes == 0)
    #expect(H264.accessUnit(annexB: ByteBuffer()).payload.readableBytes == 0)
  }

  @Test(arguments: [(15, false), (16, true), (19, true), (20, true), (21, true), (22, false), (1, false)])
  func randomAccessFramesOfHEVCAreSyncSamples(_ type: UInt8, _ isSync: Bool) throws {
    let frame: [UInt8] = [type << 1, 1, 0xAF]
    let vps: [UInt8] = [0x40, 1]
    let unit = try HEVC.accessUnit(prefixed([[0x46, 1, 0x50], vps, frame], lengthSize: 4), lengthSize: 4)
    #expect(unit.isSync == isSync)
    #expect(unit.payload == prefixed([frame], lengthSize: 4))
    #expect(unit.parameterSets == [vps])
  }

  @Test(arguments: [(0x01, true), (0x21, false), (0x41, false), (0x61, false), (0x65, false), (0x25, false)])
  func aFrameOfH264ThatIsNoReferenceIsDisposable(_ header: UInt8, _ isDisposable: Bool) throws {
    // The headers of supplemental information have no reference bits either, and say nothing about the frame.
    let units = [sei, [header, 0x9A, 0x22]]
    #expect(try H264.accessUnit(prefixed(units, lengthSize: 4), lengthSize: 4).isDisposable == isDisposable)
    let stream = units.flatMap { (unit: [UInt8]) -> [UInt8] in [0, 0, 0, 1] + unit }
    #expect(H264.accessUnit(annexB: ByteBuffer(bytes: stream)).isDisposable == isDisposable)
  }

  @Test func aFrameWithOneFieldThatOthersReferToIsNotDisposable() throws {
    let fields = prefixed([[0x41, 0x9A], [0x01, 0x9A]], lengthSize: 4)
    #expect(try !H264.accessUnit(fields, lengthSize: 4).isDisposable)
  }

  @Test func anAccessUnitWithoutASliceIsNotDisposable() throws {
    #expect(try !H264.accessUnit(prefixed([sei], lengthSize: 4), lengthSize: 4).isDisposable)
  }

  @Test(
    arguments: [
      (0, 0, 1, true), (1, 0, 1, false), (6, 0, 1, true), (8, 0, 1, true), (9, 0, 1, false), (14, 0, 1, true),
      // Below the highest temporal layer a frame may serve the layers above.
      (0, 0, 2, false), (0, 1, 2, true), (1, 1, 2, false), (20, 0, 1, false), (39, 0, 1, false),
    ] as [(UInt8, UInt8, UInt8, Bool)])
  func aFrameOfHEVCThatNoLayerRefersToIsDisposable(
    _ type: UInt8, _ layer: UInt8, _ layers: UInt8, _ isDisposable: Bool
  ) throws {
    let frame: [UInt8] = [type << 1, layer + 1, 0xAF]
    let unit = try HEVC.accessUnit(prefixed([frame], lengthSize: 4), lengthSize: 4, temporalLayers: layers)
    #expect(unit.isDisposable == isDisposable)
    let stream = ByteBuffer(bytes: [0, 0, 1] + frame)
    #expect(HEVC.accessUnit(annexB: stream, temporalLayers: layers).isDisposable == isDisposable)
  }

  private func prefixed(_ units: [[UInt8]], lengthSize: Int) -> ByteBuffer {
    var buffer = ByteBuffer()
    for unit in units {
      switch lengthSize {
      case 1: buffer.writeInteger(UInt8(unit.count))
      case 2: buffer.writeInteger(UInt16(unit.count))
      default: buffer.writeInteger(UInt32(unit.count))
      }
      buffer.writeBytes(unit)
    }
    return buffer
  }
}

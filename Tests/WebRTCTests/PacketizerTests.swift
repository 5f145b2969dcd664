import NIOCore
import Testing
@testable import WebRTC

/// Samples that are taken apart for packets, and what the assemblers make of them.
@Suite struct PacketizerTests {
  private static let (sps, pps): ([UInt8], [UInt8]) = ([0x67, 0x42, 0, 0x1F], [0x68, 0xCE])

  private static func pieces(
    _ packetizer: any RTPPacketizer, _ sample: [UInt8], isSync: Bool = false
  ) -> [RTPPiece] {
    var pieces: [RTPPiece] = []
    packetizer.pieces(of: ByteBuffer(bytes: sample), isSync: isSync, to: &pieces)
    return pieces
  }

  /// As they go into packets.
  private static func bytes(_ piece: RTPPiece) -> [UInt8] {
    withUnsafeBytes(of: piece.head.bigEndian) { Array($0.prefix(piece.head.count)) }
      + Array(piece.body.readableBytesView)
  }

  /// Units with their lengths, as samples have them.
  private static func sample(_ units: [UInt8]...) -> [UInt8] {
    units.flatMap { unit in withUnsafeBytes(of: UInt32(unit.count).bigEndian) { Array($0) } + unit }
  }

  /// What an assembler makes of the pieces of one sample.
  private static func assembled(
    _ pieces: [RTPPiece], _ assembler: some RTPFrameAssembler
  ) throws -> [RTPFrame] {
    var (assembler, events) = (assembler, [RTPFrameEvent]())
    for (number, piece) in pieces.enumerated() {
      let packet = try #require(
        RTPPackets.packet(UInt16(number), at: 3000, marker: piece.isLast, Self.bytes(piece)))
      assembler.receive(packet, afterGap: false, to: &events)
    }
    return events.compactMap { if case .frame(let frame) = $0 { frame } else { nil } }
  }

  /// Of so many bytes behind its header. A slice of it begins its picture.
  private static func unit(_ header: UInt8, _ count: Int) -> [UInt8] {
    [header] + (0..<count).map { UInt8(truncatingIfNeeded: 0x80 &+ $0 &* 7) }
  }

  // MARK: H.264

  @Test func `A key frame begins with its parameter sets in one packet`() {
    let pieces = Self.pieces(
      H264Packetizer(sps: [Self.sps], pps: [Self.pps]), Self.sample([0x06, 5], [0x65, 0x88, 1]), isSync: true)
    #expect(
      pieces.map(Self.bytes) == [
        [0x78, 0, 4] + Self.sps + [0, 2] + Self.pps, [0x06, 5], [0x65, 0x88, 1],
      ])
    #expect(pieces.map(\.isLast) == [false, false, true])
    let other = Self.pieces(H264Packetizer(sps: [Self.sps], pps: [Self.pps]), Self.sample([0x41, 0x9A]))
    #expect(other.map(Self.bytes) == [[0x41, 0x9A]] && other.map(\.isLast) == [true])
  }

  @Test func `A unit that fits a packet is whole, and a longer one in fragments`() {
    let packetizer = H264Packetizer(sps: [Self.sps], pps: [Self.pps])
    let most = WebRTCLimits.payloadBytes
    #expect(Self.pieces(packetizer, Self.sample(Self.unit(0x41, most - 1))).count == 1)
    let split = Self.pieces(packetizer, Self.sample(Self.unit(0x41, most)))
    #expect(split.map { Array(Self.bytes($0).prefix(2)) } == [[0x5C, 0x81], [0x5C, 0x41]])
    #expect(split.map(\.byteCount).max() ?? 0 <= most)
  }

  @Test(arguments: [1, 2, 1179, 1180, 1181, 2357, 2358, 60_000])
  func `H.264 comes back as it was`(count: Int) throws {
    let sample = Self.sample([0x06, 1, 2], Self.unit(0x65, count), Self.unit(0x65, 3))
    let packetizer = H264Packetizer(sps: [Self.sps], pps: [Self.pps])
    let pieces = Self.pieces(packetizer, sample, isSync: true)
    #expect(pieces.allSatisfy { $0.byteCount <= WebRTCLimits.payloadBytes })
    let frames = try Self.assembled(pieces, H264Assembler())
    #expect(frames.map { Array($0.payload.readableBytesView) } == [sample])
    #expect(frames.first?.parameterSets == [Self.sps, Self.pps] && frames.first?.isKey == true)
  }

  @Test func `Parameter sets that fit no packet together come one by one`() throws {
    let long = [0x68] + [UInt8](repeating: 1, count: 2000)
    let pieces = Self.pieces(H264Packetizer(sps: [Self.sps], pps: [long]), Self.sample([0x65, 0x88, 1]), isSync: true)
    #expect(pieces.allSatisfy { $0.byteCount <= WebRTCLimits.payloadBytes })
    #expect(try Self.assembled(pieces, H264Assembler()).first?.parameterSets == [Self.sps, long])
  }

  @Test func `What cannot be read has no packets`() {
    let packetizer = H264Packetizer(sps: [Self.sps], pps: [Self.pps])
    for sample: [UInt8] in [[], [0, 0], [0, 0, 0, 0], [0, 0, 0, 9, 0x65], [0xFF, 0xFF, 0xFF, 0xFF, 1]] {
      #expect(Self.pieces(packetizer, sample, isSync: true).isEmpty, "\(sample)")
      #expect(Self.pieces(AV1Packetizer(record: []), [0x32], isSync: true).isEmpty)
    }
  }

  // MARK: HEVC

  private static let (hevcVPS, hevcSPS, hevcPPS): ([UInt8], [UInt8], [UInt8]) = (
    [0x40, 1, 0x0C], [0x42, 1, 1, 1], [0x44, 1, 0xC1]
  )
  private static var hevc: H265Packetizer { H265Packetizer(vps: [hevcVPS], sps: [hevcSPS], pps: [hevcPPS]) }

  /// RFC 7798 §4.4.2: the payload header, and each unit behind its length.
  @Test func `A key frame of HEVC begins with its parameter sets in one packet`() {
    let pieces = Self.pieces(Self.hevc, Self.sample([0x4E, 1, 5], [0x26, 1, 0xAF]), isSync: true)
    #expect(
      pieces.map(Self.bytes) == [
        [0x60, 1, 0, 3] + Self.hevcVPS + [0, 4] + Self.hevcSPS + [0, 3] + Self.hevcPPS, [0x4E, 1, 5], [0x26, 1, 0xAF],
      ])
    #expect(pieces.map(\.isLast) == [false, false, true])
    #expect(Self.pieces(Self.hevc, Self.sample([0x02, 1, 0xD0])).map(Self.bytes) == [[0x02, 1, 0xD0]])
  }

  @Test func `A packet of several units is of their lowest layers`() {
    #expect(H265Payload.aggregationHeader([[0x02, 0x1B], [0x02, 0x12]]) == [0x60, 0x12])
    #expect(H265Payload.aggregationHeader([[0x03, 0x01], [0x02, 0xF9, 9]]) == [0x60, 0xF9])
    #expect(H264Payload.aggregationHeader([[0x27], [0x68, 1], []]) == [0x78])
  }

  /// RFC 7798 §4.4.3: the layers of the unit stay in the payload header, its type is in that of the fragment.
  @Test func `A unit of HEVC that fits a packet is whole, and a longer one in fragments of equal length`() {
    let most = WebRTCLimits.payloadBytes
    #expect(Self.pieces(Self.hevc, Self.sample([0x02] + Self.unit(0x0A, most - 2))).count == 1)
    let split = Self.pieces(Self.hevc, Self.sample([0x02] + Self.unit(0x0A, most - 1)))
    #expect(split.map { Array(Self.bytes($0).prefix(3)) } == [[0x62, 0x0A, 0x81], [0x62, 0x0A, 0x41]])
    #expect(split.map(\.byteCount) == [593, 592])
    let long = Self.pieces(Self.hevc, Self.sample([0x26] + Self.unit(1, 3 * most)), isSync: true).dropFirst()
    #expect(long.map { Self.bytes($0)[2] } == [0x93, 0x13, 0x13, 0x53])
  }

  @Test(arguments: [1, 2, 1177, 1178, 1179, 1180, 2354, 2355, 60_000])
  func `HEVC comes back as it was`(count: Int) throws {
    let sample = Self.sample([0x4E, 1, 2], [0x26] + Self.unit(1, count), [0x26] + Self.unit(1, 3))
    let pieces = Self.pieces(Self.hevc, sample, isSync: true)
    #expect(pieces.allSatisfy { $0.byteCount <= WebRTCLimits.payloadBytes })
    let frames = try Self.assembled(pieces, H265Assembler())
    #expect(frames.map { Array($0.payload.readableBytesView) } == [sample])
    #expect(frames.first?.parameterSets == [Self.hevcVPS, Self.hevcSPS, Self.hevcPPS] && frames.first?.isKey == true)
  }

  @Test func `Parameter sets of HEVC that fit no packet together come one by one`() throws {
    let long = Self.hevcPPS + [UInt8](repeating: 1, count: 2000)
    let packetizer = NALUnitPacketizer<H265Payload>(sets: [Self.hevcVPS, Self.hevcSPS, long])
    let pieces = Self.pieces(packetizer, Self.sample([0x26, 1, 0xAF]), isSync: true)
    #expect(pieces.map(\.byteCount) == [3, 4, 1004, 1003, 3])
    let frames = try Self.assembled(pieces, H265Assembler())
    #expect(frames.first?.parameterSets == [Self.hevcVPS, Self.hevcSPS, long])
  }

  @Test func `HEVC that cannot be read has no packets`() {
    let samples: [[UInt8]] = [
      [], [0, 0], [0, 0, 0, 0], [0, 0, 0, 1, 0x26], [0, 0, 0, 9, 0x26, 1], [0xFF, 0xFF, 0xFF, 0xFF],
    ]
    for sample in samples {
      #expect(Self.pieces(Self.hevc, sample, isSync: true).isEmpty, "\(sample)")
    }
  }

  // MARK: AV1, VP9, Opus

  @Test(arguments: [1, 126, 127, 1150, 1165, 1166, 1167, 1168, 1169, 1170, 1171, 1172, 1173, 1174, 1175, 2342, 5000])
  func `AV1 comes back as it was, and its first packet says that a sequence begins`(count: Int) throws {
    func obu(_ header: UInt8, _ payload: [UInt8]) -> [UInt8] {
      var (size, bytes) = (payload.count, [header])
      repeat {
        bytes.append(UInt8(size & 127) | (size > 127 ? 128 : 0))
        size >>= 7
      } while size > 0
      return bytes + payload
    }
    let (header, frame) = (obu(0x0A, [1, 2, 3]), obu(0x32, Self.unit(0, count)))
    let packetizer = AV1Packetizer(record: [0x81, 0, 0, 0] + header)
    let key = Self.pieces(packetizer, header + frame, isSync: true)
    #expect(key.allSatisfy { $0.byteCount <= WebRTCLimits.payloadBytes })
    #expect(Array(Self.bytes(key[0]).prefix(6)) == [key.count > 1 ? 0x48 : 0x08, 4, 0x08, 1, 2, 3])
    #expect(key.dropFirst().allSatisfy { Self.bytes($0)[0] & 0x80 != 0 }, "only the first one begins with a whole unit")
    #expect(try Self.assembled(key, AV1Assembler()).map { Array($0.payload.readableBytesView) } == [header + frame])
    // Units that end with their packet.
    let two = Self.pieces(packetizer, header + frame + frame, isSync: true)
    #expect(two.dropFirst().allSatisfy { Self.bytes($0)[0] & 0x80 != 0 } && two.count >= key.count)
    #expect(two.allSatisfy { $0.byteCount <= WebRTCLimits.payloadBytes })
    #expect(
      try Self.assembled(two, AV1Assembler()).map { Array($0.payload.readableBytesView) } == [header + frame + frame])
    // One without gets it.
    let bare = try Self.assembled(Self.pieces(packetizer, frame, isSync: true), AV1Assembler())
    #expect(bare.map { Array($0.payload.readableBytesView) } == [header + frame] && bare.first?.isKey == true)
    let other = Self.pieces(packetizer, frame)
    #expect(Self.bytes(other[0])[0] & 0x08 == 0)
    #expect(try Self.assembled(other, AV1Assembler()).map { Array($0.payload.readableBytesView) } == [frame])
  }

  @Test(arguments: [1, 1179, 1180, 4000]) func `VP9 comes back as it was`(count: Int) throws {
    let sample = Self.unit(0x82, count)
    let pieces = Self.pieces(VP9Packetizer(), sample)
    #expect(pieces.allSatisfy { $0.byteCount <= WebRTCLimits.payloadBytes })
    #expect(Self.bytes(pieces[0])[0] & 0xF8 == 0x48 && pieces.filter(\.isLast).count == 1)
    #expect(try Self.assembled(pieces, VP9Assembler()).map { Array($0.payload.readableBytesView) } == [sample])
  }

  @Test func `A packet of Opus is a sample`() {
    #expect(Self.pieces(OpusPacketizer(), [0xFC, 1]).map(Self.bytes) == [[0xFC, 1]])
    #expect(Self.pieces(OpusPacketizer(), []).isEmpty)
    #expect(Self.pieces(OpusPacketizer(), [UInt8](repeating: 0, count: WebRTCLimits.audioPayloadBytes + 1)).isEmpty)
  }
}

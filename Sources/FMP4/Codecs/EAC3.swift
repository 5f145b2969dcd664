package import NIOCore

/// E-AC-3 (ETSI TS 102 366 annex E), as stored in MP4 by annex F. A sample holds six blocks of audio: the syncframes of the
/// first programme, with those that depend on them. The record is made of the frames.
package enum EAC3 {
  /// Blocks of a sample, and samples of a block.
  package static let blocksPerSample = 6
  private static let samplesPerBlock = 256
  /// Bytes of a frame that `Frame` reads.
  package static let headerBytes = 16

  /// The header of a syncframe (§E.1.2).
  package struct Frame: Sendable, Hashable {
    package enum Role: Sendable, Hashable {
      case independent
      /// It adds channels to the frame before it. Nil if it has those of its mode.
      case dependent(channelMap: UInt16?)
    }

    package let role: Role
    /// `substreamid`: the number of its programme, or of the dependent stream.
    package let substream: UInt8
    /// Bytes of the whole frame.
    package let byteCount: Int
    /// 1, 2, 3 or 6.
    package let blocks: Int
    let rateCode: UInt8
    let identification: UInt8
    let mode: UInt8
    let hasLowFrequencies: Bool

    /// Nil if no frame of E-AC-3 begins with the bytes.
    package init?(_ bytes: ByteBuffer) {
      let count = min(bytes.readableBytes, EAC3.headerBytes)
      guard let head = bytes.getBytes(at: bytes.readerIndex, length: count) else { return nil }
      do throws(CodecError) { try self.init(head) } catch { return nil }
    }

    private init(_ head: [UInt8]) throws(CodecError) {
      var reader = BitReader(head)
      let invalid = CodecError(.invalid, "no frame of E-AC-3")
      guard try reader.bits(16) == UInt32(AC3.syncWord) else { throw invalid }
      let type = try reader.bits(2)
      substream = UInt8(truncatingIfNeeded: try reader.bits(3))
      byteCount = (Int(try reader.bits(11)) + 1) * 2
      rateCode = UInt8(truncatingIfNeeded: try reader.bits(2))
      // Rates below 32 kHz have no code in `dec3`.
      guard type != 3, rateCode != 3 else { throw invalid }
      blocks = [1, 2, 3, 6][Int(try reader.bits(2)) & 3]
      mode = UInt8(truncatingIfNeeded: try reader.bits(3))
      hasLowFrequencies = try reader.flag()
      identification = UInt8(truncatingIfNeeded: try reader.bits(5))
      guard (11...16).contains(identification) else { throw invalid }
      guard type == 1 else {
        role = .independent
        return
      }
      // `dialnorm` and `compr`, twice in dual mono.
      for _ in 0..<(mode == 0 ? 2 : 1) {
        try reader.skip(5)
        if try reader.flag() { try reader.skip(8) }
      }
      role = .dependent(channelMap: try reader.flag() ? UInt16(try reader.bits(16)) : nil)
    }
  }

  /// The `dec3` box's content (annex F.6), of one independent substream.
  package struct Configuration: AudioConfiguration {
    package static let id = CodecID.eac3
    package static let name = "E-AC-3"
    package static let sampleEntry: (type: FourCC, configuration: FourCC)? = ("ec-3", "dec3")
    package static let isStatedByFrames = true
    package static let rollDistance: Int16? = -1

    /// kbit/s.
    let dataRate: UInt16
    let rateCode: UInt8
    let identification: UInt8
    let service: UInt8
    let mode: UInt8
    let hasLowFrequencies: Bool
    let dependents: UInt8
    /// `chan_loc`: channels that dependent substreams add. The lowest bit is Lc and Rc.
    let locations: UInt16
    /// What follows, such as the complexity of object audio.
    let rest: [UInt8]

    /// Pairs among the locations: Lc/Rc, Lrs/Rrs, Lsd/Rsd, Lw/Rw, Lvh/Rvh.
    private static let pairs: UInt16 = 0b0_0111_0011
    private static let mostRest = 16

    /// The configuration of the frames of a sample: an independent one, and those that depend on it. Nil if the first is
    /// not independent.
    package init?(_ frames: [Frame]) {
      guard let first = frames.first, first.role == .independent else { return nil }
      let dependents = Set(frames.filter { $0.role != .independent }.map(\.substream))
      var locations: UInt16 = 0
      for case .dependent(let map?) in frames.map(\.role) {
        // The map's highest bit is left; Lc/Rc is bit 5 from there, LFE2 bit 14.
        for bit in UInt16(0)..<8 where map >> (10 - bit) & 1 != 0 { locations |= 1 << bit }
        if map >> 1 & 1 != 0 { locations |= 1 << 8 }
      }
      let blocks = frames.reduce(0) { $0 + ($1.role == .independent ? $1.blocks : 0) }
      let samples = max(blocks, 1) * EAC3.samplesPerBlock
      let bytes = frames.reduce(0) { $0 + $1.byteCount }
      dataRate = UInt16(clamping: bytes * 8 * Int(AC3.rates[Int(first.rateCode) % 3]) / samples / 1000)
      (rateCode, identification, service) = (first.rateCode, first.identification, 0)
      (mode, hasLowFrequencies) = (first.mode, first.hasLowFrequencies)
      self.dependents = UInt8(clamping: min(dependents.count, 15))
      self.locations = locations
      rest = []
    }

    package init(record: ByteBuffer) throws(CodecError) {
      var reader = BitReader(Array(record.readableBytesView.prefix(64)))
      func field(_ count: Int) throws(CodecError) -> UInt8 { UInt8(truncatingIfNeeded: try reader.bits(count)) }
      dataRate = UInt16(try reader.bits(13))
      guard try reader.bits(3) == 0 else {
        throw CodecError(.unsupported, "E-AC-3 with several programmes in one track")
      }
      rateCode = try field(2)
      guard rateCode != 3 else { throw CodecError(.invalid, "E-AC-3 with sampling rate code 3") }
      identification = try field(5)
      try reader.skip(2)
      service = try field(3)
      mode = try field(3)
      hasLowFrequencies = try reader.flag()
      try reader.skip(3)
      dependents = try field(4)
      locations = dependents > 0 ? UInt16(try reader.bits(9)) : 0
      if dependents == 0 { try reader.skip(1) }
      var rest: [UInt8] = []
      while reader.remaining >= 8, rest.count < Self.mostRest { rest.append(try field(8)) }
      self.rest = rest
    }

    package static func record(inFrame frame: ByteBuffer) -> [UInt8]? {
      var rest = frame
      var frames: [Frame] = []
      while let next = Frame(rest), rest.readSlice(length: next.byteCount) != nil { frames.append(next) }
      return Self(frames)?.record()
    }

    /// Whether both are of the same channels and rate. The rate of the bytes may vary from sample to sample.
    package func hasFormat(of other: Self) -> Bool {
      (rateCode, identification, mode, hasLowFrequencies, dependents)
        == (other.rateCode, other.identification, other.mode, other.hasLowFrequencies, other.dependents)
        && locations == other.locations
    }

    package func record() -> [UInt8] {
      var bits =
        UInt64(dataRate & 0x1FFF) << 27 | UInt64(rateCode) << 22 | UInt64(identification) << 17
        | UInt64(service) << 12 | UInt64(mode) << 9 | (hasLowFrequencies ? 1 : 0) << 8 | UInt64(dependents) << 1
      var count = 5
      if dependents > 0 {
        // Nine bits of locations replace the reserved bit.
        bits = bits << 8 | UInt64(locations & 0x1FF)
        count = 6
      }
      return (0..<count).map { UInt8(truncatingIfNeeded: bits >> UInt64(8 * (count - 1 - $0))) } + rest
    }

    package var sampleRate: UInt32 { AC3.rates[Int(rateCode) % AC3.rates.count] }
    package var channels: Int {
      AC3.mainChannels(mode) + (hasLowFrequencies ? 1 : 0) + locations.nonzeroBitCount
        + (locations & Self.pairs).nonzeroBitCount
    }
    package var frameDuration: UInt32? { AC3.samplesPerFrame }
    package func duration(of frame: ByteBuffer) -> UInt32? { AC3.samplesPerFrame }
    package var codecString: String { "ec-3" }
  }
}

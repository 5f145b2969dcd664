import NIOCore
import Publishing
import Testing
@testable import WebRTC

/// Frames of HEVC from their packets, and what H.264 and HEVC have in common. Those of H.264: `FrameAssemblerTests`.
@Suite struct NALUnitAssemblerTests {
  private typealias Driver<Payload: NALUnitPayload> = FrameDriver<NALUnitAssembler<Payload>>

  private static let (vps, sps, pps): ([UInt8], [UInt8], [UInt8]) = (
    [0x40, 1, 0x0C], [0x42, 1, 1, 1], [0x44, 1, 0xC1]
  )
  /// The first slice of a key frame (IDR_W_RADL), of another frame (TRAIL_R), and a later slice of that.
  private static let (key, frame, later): ([UInt8], [UInt8], [UInt8]) = (
    [0x26, 1, 0xAF, 1, 2], [0x02, 1, 0xD0, 3], [0x02, 1, 0x50, 3]
  )

  private static func hevc() -> Driver<H265Payload> { Driver(assembler: H265Assembler()) }

  /// Units with their lengths, as samples have them.
  private static func sample(_ units: [UInt8]...) -> [UInt8] {
    units.flatMap { unit in withUnsafeBytes(of: UInt32(unit.count).bigEndian) { Array($0) } + unit }
  }

  /// Units in one packet (AP, RFC 7798 §4.4.2).
  private static func together(_ units: [UInt8]...) -> [UInt8] {
    [0x60, 1] + units.flatMap { [UInt8($0.count >> 8), UInt8($0.count & 255)] + $0 }
  }

  /// The fragments of a unit (FU, RFC 7798 §4.4.3), of so many bytes each.
  private static func fragments(_ unit: [UInt8], of length: Int) -> [[UInt8]] {
    stride(from: 2, to: unit.count, by: length).map { place in
      let marks: UInt8 = (place == 2 ? 0x80 : 0) | (place + length >= unit.count ? 0x40 : 0)
      let head: [UInt8] = [unit[0] & 0x81 | 0x62, unit[1], marks | unit[0] >> 1 & 63]
      return head + unit[place...].prefix(length)
    }
  }

  // MARK: HEVC

  @Test func `Units of HEVC come one by one, together, and in fragments`() throws {
    var driver = Self.hevc()
    try driver.feed([0x60, 1, 0, 3] + Self.vps + [0, 4] + Self.sps + [0, 3] + Self.pps)
    try driver.feed([0x62, 1, 0x93, 0xAF])
    try driver.feed([0x62, 1, 0x13, 1])
    try driver.feed([0x62, 1, 0x53, 2], marker: true)
    try driver.feed(Self.frame, at: 3000, marker: true)
    guard case .frame(let first)? = driver.events.first else {
      Issue.record("no frame")
      return
    }
    #expect(first.isKey && first.parameterSets == [Self.vps, Self.sps, Self.pps])
    #expect(driver.frames == [Self.sample(Self.key), Self.sample(Self.frame)] && driver.keys == [true, false])
  }

  @Test(arguments: 1...20) func `A unit comes back from fragments of any length`(length: Int) throws {
    // Of a layer and a temporal layer above the lowest ones.
    let unit: [UInt8] = [0x03, 0x0B, 0x80] + (1..<20).map { UInt8($0) }
    let long = Self.sps + [UInt8](repeating: 7, count: 16)
    var driver = Self.hevc()
    for fragment in Self.fragments(long, of: length) + Self.fragments(unit, of: length) { try driver.feed(fragment) }
    try driver.feed(Self.later, marker: true)
    guard case .frame(let only)? = driver.events.first else {
      Issue.record("no frame")
      return
    }
    #expect(driver.frames == [Self.sample(unit, Self.later)] && only.parameterSets == [long])
  }

  @Test func `Decoding begins with random access pictures alone`() throws {
    var driver = Self.hevc()
    try driver.feed(frames: (UInt8(0)..<32).map { [$0 << 1, 1, 0x80] })
    // Types 22 to 31 are of no frame that decoders know.
    #expect(driver.keys == [Bool?](repeating: false, count: 16) + [Bool?](repeating: true, count: 6))
  }

  @Test func `Delimiters and filler go, messages and the end of a sequence stay`() throws {
    let (early, late): ([UInt8], [UInt8]) = ([0x4E, 1, 5], [0x50, 1, 5])
    var driver = Self.hevc()
    for unit in [[0x46, 1, 0x50], early, Self.frame, Self.later, [0x4C, 1, 0xFF], late] { try driver.feed(unit) }
    try driver.feed([0x48, 1], marker: true)
    #expect(driver.frames == [Self.sample(early, Self.frame, Self.later, late, [0x48, 1])])
  }

  @Test func `Parameter sets of HEVC may come by themselves, and nothing comes of a packet without a slice`() throws {
    var driver = Self.hevc()
    try driver.feed(frames: [Self.together(Self.vps, Self.sps), [0x46, 1, 0x50], [0x60, 1]])
    guard case .frame(let only)? = driver.events.first, driver.events.count == 1 else {
      Issue.record("\(driver.events.count) events")
      return
    }
    #expect(only.parameterSets == [Self.vps, Self.sps] && only.payload.readableBytes == 0 && !only.isKey)
  }

  @Test func `A frame of HEVC without a mark ends with the next one`() throws {
    var driver = Self.hevc()
    try driver.feed(Self.key)
    try driver.feed(Self.frame, at: 3000)
    #expect(driver.frames == [Self.sample(Self.key)])
  }

  @Test func `Only whole frames of HEVC go on`() throws {
    var driver = Self.hevc()
    try driver.feed([0x62, 1, 0x93, 0xAF])
    try driver.feed([0x62, 1, 0x53, 2], marker: true, afterGap: true)
    #expect(driver.frames == [nil])
    // The end is missing, or the whole of another frame.
    try driver.feed(Self.key, at: 3000)
    try driver.feed(Self.frame, at: 6000, marker: true, afterGap: true)
    #expect(driver.frames == [nil, nil, Self.sample(Self.frame)])
    // The first slice is missing.
    try driver.feed(Self.later, at: 9000, marker: true, afterGap: true)
    // A fragment that ends without a beginning, one that never ends, and one within which another unit comes.
    try driver.feed([0x62, 1, 0x53, 2], at: 12_000, marker: true)
    try driver.feed([0x62, 1, 0x93, 0xAF], at: 15_000, marker: true)
    try driver.feed([0x62, 1, 0x93, 0xAF], at: 18_000)
    try driver.feed(Self.later, at: 18_000, marker: true)
    #expect(driver.frames.suffix(4) == [nil, nil, nil, nil])
  }

  /// The numbers of a sender that lies have no gap where packets are missing.
  @Test func `A frame without its first slice is lost, whatever the numbers say`() throws {
    var driver = Self.hevc()
    try driver.feed(frames: [Self.later, Self.together(Self.later, Self.frame), [0x62, 1, 0xC1, 0x50], [0x02, 1]])
    #expect(driver.frames == [nil, nil, nil, nil])
    var other = Driver(assembler: H264Assembler())
    try other.feed(frames: [[0x65, 0x38, 1], [0x78, 0, 2, 0x41, 0x3A], [0x7C, 0xC5, 0x38], [0x41], [0x65, 0x88, 1]])
    #expect(other.frames == [nil, nil, nil, nil, [0, 0, 0, 3, 0x65, 0x88, 1]])
  }

  @Test func `Whole frames of HEVC that are missing are told once`() throws {
    var driver = Self.hevc()
    try driver.feed(Self.key, marker: true)
    try driver.feed(Self.frame, at: 9000, marker: true, afterGap: true)
    try driver.feed(Self.frame, at: 12_000, marker: true)
    #expect(driver.frames == [Self.sample(Self.key), nil, Self.sample(Self.frame), Self.sample(Self.frame)])
  }

  @Test func `A frame of HEVC begins with its first slice, or with what stands before it`() {
    let beginnings: [[UInt8]] = [
      Self.key, Self.frame, Self.vps, Self.pps, [0x46, 1, 0x50], [0x4E, 1, 5], Self.together(Self.vps),
      Self.together(Self.frame, Self.later), [0x62, 1, 0x81, 0xD0], [0x62, 1, 0xA2, 1],
    ]
    for payload in beginnings { #expect(H265Payload.begins(ByteBuffer(bytes: payload)), "\(payload)") }
    let others: [[UInt8]] = [
      Self.later, [0x50, 1, 5], [0x48, 1], Self.together(Self.later), [0x62, 1, 0x81, 0x50], [0x62, 1, 0x01, 0xD0],
      [0x62, 1, 0x81], [0x62], [0x64, 1, 0xD0], [0x60, 1, 0, 4, 0x02], [0x02, 1], [0x02], [],
      // Of a layer above the base.
      [0x02, 0x09, 0xD0],
    ]
    for payload in others { #expect(!H265Payload.begins(ByteBuffer(bytes: payload)), "\(payload)") }
  }

  @Test func `Payloads of other forms lose their frame of HEVC`() throws {
    let payloads: [[UInt8]] = [
      // PACI and types that nobody knows; less than a header.
      [0x64, 1, 1], [0x66, 1, 1], [0x7E, 1, 1], [0x02], [0x60], [0x62], [0x62, 1, 0x93],
      // Units that exceed their packet, that are empty, less than a header, packets of packets.
      [0x60, 1, 0, 9, 0x02, 1], [0x60, 1, 0, 0], [0x60, 1, 0, 1, 0x02], [0x60, 1, 0xFF, 0xFF],
      Self.together([0x60, 1, 0]), [0x62, 1, 0xF0, 1], [0x62, 1, 0xF1, 1],
    ]
    var driver = Self.hevc()
    try driver.feed(frames: payloads)
    #expect(driver.frames == payloads.map { _ in nil })
  }

  @Test func `Fragments that never end, and parameter sets without end, are bounded`() throws {
    var driver = Self.hevc()
    try driver.feed([0x62, 1, 0x93] + [UInt8](repeating: 1, count: 1400))
    for _ in 0..<(WebRTCLimits.frameBytes / 1400 + 10) {
      try driver.feed([0x62, 1, 0x13] + [UInt8](repeating: 1, count: 1400))
    }
    try driver.feed([0x62, 1, 0x53, 1], marker: true)
    #expect(driver.frames == [nil])
    for (count, isTaken) in [(PublicationLimits.parameterSets, true), (PublicationLimits.parameterSets + 1, false)] {
      var other = Self.hevc()
      for _ in 0..<count { try other.feed(Self.pps) }
      try other.feed(Self.key, marker: true)
      let expected: [UInt8]? = isTaken ? Self.sample(Self.key) : nil
      #expect(other.frames == [expected], "\(count)")
    }
  }

  // MARK: both

  private static func comesBack<Payload: NALUnitPayload>(_: Payload.Type) -> Bool {
    (UInt8.min...UInt8.max).allSatisfy { first in
      let headers = Payload.fragmentHeaders(first)
      return Payload.form(headers.payload) == .fragment && headers.fragment & 0xC0 == 0
        && Payload.unitHeader(headers.payload, fragment: headers.fragment | 0x80) == first
    }
  }

  @Test func `The header of a unit comes back from those of its fragments`() {
    #expect(Self.comesBack(H264Payload.self) && Self.comesBack(H265Payload.self))
  }

  /// Numbers that are the same in each run.
  private struct Dice {
    var state: UInt64

    mutating func roll(_ sides: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % max(1, sides)
    }
  }

  /// Whether it is units behind their lengths, to its end.
  private static func isWhole(_ payload: ByteBuffer) -> Bool {
    var rest = payload
    while let size: UInt32 = rest.readInteger() { if rest.readSlice(length: Int(size)) == nil { return false } }
    return rest.readableBytes == 0
  }

  /// Feeds payloads whose bytes, lengths, order, marks and gaps are changed at random. Frames are made of whole units.
  private static func attack<Payload: NALUnitPayload>(_: Payload.Type, _ payloads: [[UInt8]], seed: UInt64) throws {
    var (driver, dice, timestamp) = (Driver<Payload>(assembler: NALUnitAssembler()), Dice(state: seed), UInt32(0))
    var (count, wrong) = (0, 0)
    for _ in 0..<5000 {
      var payload = payloads[dice.roll(payloads.count)]
      for _ in 0..<dice.roll(3) where !payload.isEmpty { payload[dice.roll(payload.count)] = UInt8(dice.roll(256)) }
      if dice.roll(8) == 0 { payload = Array(payload.prefix(dice.roll(payload.count))) }
      if dice.roll(4) == 0 { timestamp &+= 3000 }
      try driver.feed(payload, at: timestamp, marker: dice.roll(3) == 0, afterGap: dice.roll(16) == 0)
      for case .frame(let frame) in driver.events {
        count += 1
        wrong += isWhole(frame.payload) ? 0 : 1
      }
      driver.events.removeAll()
    }
    #expect(wrong == 0 && count > 100, "\(wrong) of \(count), seed \(seed)")
  }

  @Test(arguments: UInt64(1)...10)
  func `Whatever comes makes whole units or a lost frame, and no trap`(seed: UInt64) throws {
    let slice = [0x26, 1] + [UInt8](repeating: 9, count: 40)
    try Self.attack(
      H265Payload.self,
      [Self.together(Self.vps, Self.sps, Self.pps, Self.key), Self.key, Self.frame, Self.later, [0x46, 1, 0x50], []]
        + Self.fragments(slice, of: 15), seed: seed)
    try Self.attack(
      H264Payload.self,
      [
        [0x78, 0, 2, 0x67, 0x42, 0, 2, 0x68, 0xCE], [0x65, 0x88, 1], [0x41, 0x9A, 3], [0x7C, 0x85, 0x88], [0x7C, 5, 1],
        [0x7C, 0x45, 2], [9, 0xF0], [],
      ], seed: seed)
  }
}

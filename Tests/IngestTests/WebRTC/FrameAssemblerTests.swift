import NIOCore
import Testing

@testable import Ingest

/// Frames of H.264 and AV1 from their packets.
@Suite struct FrameAssemblerTests {
  private struct Driver<Assembler: RTPFrameAssembler> {
    var assembler: Assembler
    var events: [RTPFrameEvent] = []
    var sequence: UInt16 = 0

    mutating func feed(_ payload: [UInt8], at timestamp: UInt32 = 0, marker: Bool = false, afterGap: Bool = false)
      throws
    {
      let packet = try #require(RTPPackets.packet(sequence, at: timestamp, marker: marker, payload))
      sequence &+= 1
      assembler.receive(packet, afterGap: afterGap, to: &events)
    }

    /// Payloads; nil for a lost frame.
    var frames: [[UInt8]?] {
      events.map { event -> [UInt8]? in
        if case .frame(let frame) = event { Array(frame.payload.readableBytesView) } else { nil }
      }
    }
  }

  private static let (sps, pps): ([UInt8], [UInt8]) = ([0x67, 0x42], [0x68, 0xCE])
  /// The first slice of a key frame, and of another frame.
  private static let (key, frame): ([UInt8], [UInt8]) = ([0x65, 0x88, 1, 2], [0x41, 0x9A, 3])

  @Test func `Units come one by one, together, and in fragments`() throws {
    var driver = Driver(assembler: H264Assembler())
    try driver.feed([0x78, 0, 2] + Self.sps + [0, 2] + Self.pps)
    try driver.feed([0x7C, 0x85, 0x88])
    try driver.feed([0x7C, 0x05, 1])
    try driver.feed([0x7C, 0x45, 2], marker: true)
    try driver.feed(Self.frame, at: 3000, marker: true)
    guard case .frame(let first)? = driver.events.first else {
      Issue.record("no frame")
      return
    }
    #expect(first.isKey && first.parameterSets == [Self.sps, Self.pps])
    #expect(driver.frames == [[0, 0, 0, 4] + Self.key, [0, 0, 0, 3] + Self.frame])
  }

  @Test func `A frame without a mark ends with the next one`() throws {
    var driver = Driver(assembler: H264Assembler())
    try driver.feed(Self.key)
    try driver.feed(Self.frame, at: 3000)
    #expect(driver.frames == [[0, 0, 0, 4] + Self.key])
  }

  @Test func `Only whole frames go on`() throws {
    var driver = Driver(assembler: H264Assembler())
    try driver.feed([0x7C, 0x85, 0x88])
    try driver.feed([0x7C, 0x45, 2], marker: true, afterGap: true)
    #expect(driver.frames == [nil])
    // The end is missing, or the whole of another frame.
    try driver.feed(Self.key, at: 3000)
    try driver.feed(Self.frame, at: 6000, marker: true, afterGap: true)
    #expect(driver.frames == [nil, nil, [0, 0, 0, 3] + Self.frame])
    // The first slice is missing.
    try driver.feed([0x41, 0x1A, 3], at: 9000, marker: true, afterGap: true)
    // A fragment that ends without a beginning, and one that never ends.
    try driver.feed([0x7C, 0x45, 2], at: 12_000, marker: true)
    try driver.feed([0x7C, 0x85, 0x88], at: 15_000, marker: true)
    #expect(driver.frames.suffix(3) == [nil, nil, nil])
  }

  @Test func `Whole frames that are missing are told once`() throws {
    var driver = Driver(assembler: H264Assembler())
    try driver.feed(Self.key, marker: true)
    try driver.feed(Self.frame, at: 9000, marker: true, afterGap: true)
    try driver.feed(Self.frame, at: 12_000, marker: true)
    let frame = [0, 0, 0, 3] + Self.frame
    #expect(driver.frames == [[0, 0, 0, 4] + Self.key, nil, frame, frame])
  }

  @Test func `Fragments that never end are bounded`() throws {
    var driver = Driver(assembler: H264Assembler())
    try driver.feed([0x7C, 0x85] + [UInt8](repeating: 1, count: 1400))
    for _ in 0..<(WebRTCLimits.frameBytes / 1400 + 10) {
      try driver.feed([0x7C, 0x05] + [UInt8](repeating: 1, count: 1400))
    }
    try driver.feed([0x7C, 0x45, 1], marker: true)
    #expect(driver.frames == [nil])
  }

  @Test func `Payloads of other forms lose their frame`() throws {
    var driver = Driver(assembler: H264Assembler())
    for payload: [UInt8] in [[0x1D, 0x85, 1], [0x79, 1, 2], [0x78, 0, 9, 1], [0x7C, 0x85], [0x00], [0x78, 0, 0]] {
      try driver.feed(payload, at: UInt32(driver.sequence) * 3000, marker: true)
    }
    #expect(driver.frames == [nil, nil, nil, nil, nil, nil])
  }

  // MARK: AV1

  @Test func `Units of AV1 get their sizes, and delimiters go`() throws {
    var driver = Driver(assembler: AV1Assembler())
    // Delimiter and sequence header with lengths, a frame to the end that goes on.
    try driver.feed([0x78, 1, 0x10, 3, 0x08, 9, 9, 0x30, 1])
    try driver.feed([0x90, 2, 3], marker: true)
    #expect(driver.frames == [[0x0A, 2, 9, 9, 0x32, 3, 1, 2, 3]])
  }

  @Test func `Only whole temporal units go on`() throws {
    var driver = Driver(assembler: AV1Assembler())
    try driver.feed([0x50, 0x30, 1])
    try driver.feed([0x90, 2], marker: true, afterGap: true)
    try driver.feed([0x90, 2], at: 3000, marker: true)
    try driver.feed([0x50, 0x30, 1], at: 6000, marker: true)
    try driver.feed([0x00, 9, 0x30], at: 9000, marker: true)
    #expect(driver.frames == [nil, nil, nil, nil])
    // Behind a gap only the first packet of a sequence is known to be the first one of its unit.
    try driver.feed([0x10, 0x30, 1], at: 12_000, marker: true, afterGap: true)
    #expect(driver.frames == [nil, nil, nil, nil, nil])
    try driver.feed([0x18, 0x30, 1], at: 15_000, marker: true, afterGap: true)
    #expect(driver.frames.suffix(2) == [nil, [0x32, 1, 1]])
  }
}

import NIOCore
import Testing
@testable import WebRTC

/// Frames of H.264, AV1, VP9 and VP8 from their packets.
@Suite struct FrameAssemblerTests {
  private static let (sps, pps): ([UInt8], [UInt8]) = ([0x67, 0x42], [0x68, 0xCE])
  /// The first slice of a key frame, and of another frame.
  private static let (key, frame): ([UInt8], [UInt8]) = ([0x65, 0x88, 1, 2], [0x41, 0x9A, 3])

  @Test func `Units come one by one, together, and in fragments`() throws {
    var driver = FrameDriver(assembler: H264Assembler())
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
    var driver = FrameDriver(assembler: H264Assembler())
    try driver.feed(Self.key)
    try driver.feed(Self.frame, at: 3000)
    #expect(driver.frames == [[0, 0, 0, 4] + Self.key])
  }

  @Test func `Only whole frames go on`() throws {
    var driver = FrameDriver(assembler: H264Assembler())
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
    var driver = FrameDriver(assembler: H264Assembler())
    try driver.feed(Self.key, marker: true)
    try driver.feed(Self.frame, at: 9000, marker: true, afterGap: true)
    try driver.feed(Self.frame, at: 12_000, marker: true)
    let frame = [0, 0, 0, 3] + Self.frame
    #expect(driver.frames == [[0, 0, 0, 4] + Self.key, nil, frame, frame])
  }

  @Test func `Fragments that never end are bounded`() throws {
    var driver = FrameDriver(assembler: H264Assembler())
    try driver.feed([0x7C, 0x85] + [UInt8](repeating: 1, count: 1400))
    for _ in 0..<100 { try driver.feed([0x7C, 0x05] + [UInt8](repeating: 1, count: 1400)) }
    #expect((141_400...141_500).contains(driver.assembler.heldBytes), "what is unfinished is told")
    for _ in 0..<(WebRTCLimits.frameBytes / 1400) {
      try driver.feed([0x7C, 0x05] + [UInt8](repeating: 1, count: 1400))
    }
    #expect(driver.assembler.heldBytes <= WebRTCLimits.frameBytes)
    try driver.feed([0x7C, 0x45, 1], marker: true)
    #expect(driver.frames == [nil])
  }

  @Test func `Payloads of other forms lose their frame`() throws {
    var driver = FrameDriver(assembler: H264Assembler())
    for payload: [UInt8] in [[0x1D, 0x85, 1], [0x79, 1, 2], [0x78, 0, 9, 1], [0x7C, 0x85], [0x00], [0x78, 0, 0]] {
      try driver.feed(payload, at: UInt32(driver.sequence) * 3000, marker: true)
    }
    #expect(driver.frames == [nil, nil, nil, nil, nil, nil])
  }

  // MARK: AV1

  @Test func `Units of AV1 get their sizes, and delimiters go`() throws {
    var driver = FrameDriver(assembler: AV1Assembler())
    // Delimiter and sequence header with lengths, a frame to the end that goes on.
    try driver.feed([0x78, 1, 0x10, 3, 0x08, 9, 9, 0x30, 1])
    try driver.feed([0x90, 2, 3], marker: true)
    #expect(driver.frames == [[0x0A, 2, 9, 9, 0x32, 3, 1, 2, 3]])
  }

  @Test func `Only whole temporal units go on`() throws {
    var driver = FrameDriver(assembler: AV1Assembler())
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

  // MARK: VP8

  /// A key frame's beginning, and another frame.
  private static let (vp8Key, vp8Frame): ([UInt8], [UInt8]) = (
    [0x10, 0x2F, 0x01, 0x9D, 0x01, 0x2A, 0x80, 0x02, 0x68, 0x01], [0xB1, 0x03, 0x00]
  )

  @Test func `Frames of VP8 lose their descriptors`() throws {
    var driver = FrameDriver(assembler: VP8Assembler())
    // A number of 15 bits; TL0PICIDX and TID; then a further partition.
    try driver.feed([0x90, 0xE0, 0x80, 5, 9, 0x20] + Self.vp8Key)
    try driver.feed([0x81, 0x80, 0x80, 5, 7, 7], at: 0, marker: true)
    // A number of 7 bits; KEYIDX alone; no field.
    try driver.feed([0x90, 0x80, 6] + Self.vp8Frame, at: 3000, marker: true)
    try driver.feed([0x90, 0x10, 1] + Self.vp8Frame, at: 6000, marker: true)
    try driver.feed([0x10] + Self.vp8Frame, at: 9000, marker: true)
    #expect(driver.frames == [Self.vp8Key + [7, 7], Self.vp8Frame, Self.vp8Frame, Self.vp8Frame])
    let keys = driver.events.map { if case .frame(let frame) = $0 { frame.isKey } else { false } }
    #expect(keys == [true, false, false, false])
  }

  @Test func `Only whole frames of VP8 go on`() throws {
    var driver = FrameDriver(assembler: VP8Assembler())
    // Its end is missing, its middle, its beginning.
    try driver.feed([0x90, 0x80, 1] + Self.vp8Key)
    try driver.feed([0x90, 0x80, 2] + Self.vp8Frame, at: 3000, afterGap: true)
    try driver.feed([0x80, 0x80, 2, 1], at: 3000, marker: true, afterGap: true)
    try driver.feed([0x80, 0x80, 3, 1], at: 6000, marker: true, afterGap: true)
    #expect(driver.frames == [nil, nil, nil])
    // A whole picture is missing, or none: what was lost only padded. Numbers of 7 bits wrap.
    try driver.feed([0x90, 0x80, 0x7E] + Self.vp8Frame, at: 12_000, marker: true, afterGap: true)
    try driver.feed([0x90, 0x80, 0x7F] + Self.vp8Frame, at: 15_000, marker: true, afterGap: true)
    try driver.feed([0x90, 0x80, 0] + Self.vp8Frame, at: 18_000, marker: true, afterGap: true)
    #expect(driver.frames.dropFirst(3) == [nil, Self.vp8Frame, Self.vp8Frame, Self.vp8Frame])
  }

  @Test func `Descriptors of VP8 that exceed their packet lose its frame`() throws {
    var driver = FrameDriver(assembler: VP8Assembler())
    let whole: [[UInt8]] = [
      [0x90], [0x90, 0x80], [0x90, 0x80, 0x80], [0x90, 0x40], [0x90, 0x20], [0x90, 0x10], [0x10],
    ]
    for (number, payload) in whole.enumerated() {
      try driver.feed(payload, at: UInt32(number) * 3000, marker: true)
    }
    #expect(driver.frames == whole.map { _ in nil })
  }

  // MARK: VP9

  /// The beginning of a key frame, and of another frame.
  private static let (vp9Key, vp9Frame): ([UInt8], [UInt8]) = (
    [0x82, 0x49, 0x83, 0x42, 0x40, 0x27, 0xF0, 0x16, 0x76, 0x06], [0x86, 0x00, 0x40]
  )

  @Test func `Frames of VP9 lose their descriptors, in either mode`() throws {
    var driver = FrameDriver(assembler: VP9Assembler())
    // Not flexible: number of 15 bits, layers with TL0PICIDX, a structure with a size and groups.
    let structure: [UInt8] = [0x18, 2, 0x80, 1, 0x68, 2, 0x04, 1, 0x08, 1, 2]
    try driver.feed([0xAA, 0x80, 5, 0x00, 9] + structure + Self.vp9Key)
    try driver.feed([0xA4, 0x80, 5, 0x00, 9, 7, 7], marker: true)
    // Flexible: number of 7 bits, two references.
    try driver.feed([0xFC, 6, 0x00, 0x03, 0x04] + Self.vp9Frame, at: 3000, marker: true)
    // No field at all.
    try driver.feed([0x0C] + Self.vp9Frame, at: 6000, marker: true)
    #expect(driver.frames == [Self.vp9Key + [7, 7], Self.vp9Frame, Self.vp9Frame])
    let keys = driver.events.map { if case .frame(let frame) = $0 { frame.isKey } else { false } }
    #expect(keys == [true, false, false])
  }

  @Test func `Of spatial layers the base goes on`() throws {
    var driver = FrameDriver(assembler: VP9Assembler())
    for (number, picture) in [Self.vp9Key, Self.vp9Frame, Self.vp9Frame].enumerated() {
      let (time, id) = (UInt32(number) * 3000, UInt8(number))
      try driver.feed([0xBC, id, 0x00] + picture, at: time)
      // The higher layer, the second time behind a gap within it: no picture of the base is missing.
      try driver.feed([0xB8, id, 0x03, 1, 1], at: time)
      try driver.feed([0xB4, id, 0x03, 2], at: time, marker: true, afterGap: number == 1)
    }
    #expect(driver.frames == [Self.vp9Key, Self.vp9Frame, Self.vp9Frame])
  }

  @Test func `Only whole frames of VP9 go on`() throws {
    var driver = FrameDriver(assembler: VP9Assembler())
    // Its end is missing, its middle, its beginning.
    try driver.feed([0x88, 1] + Self.vp9Key)
    try driver.feed([0x88, 2] + Self.vp9Frame, at: 3000, afterGap: true)
    try driver.feed([0x84, 2, 1], at: 3000, marker: true, afterGap: true)
    try driver.feed([0x84, 3, 1], at: 6000, marker: true, afterGap: true)
    #expect(driver.frames == [nil, nil, nil])
    // A whole picture is missing, or none: what was lost only padded.
    try driver.feed([0x8C, 5] + Self.vp9Frame, at: 12_000, marker: true, afterGap: true)
    try driver.feed([0x8C, 6] + Self.vp9Frame, at: 15_000, marker: true, afterGap: true)
    #expect(driver.frames.dropFirst(3) == [nil, Self.vp9Frame, Self.vp9Frame])
    // Numbers of 7 bits wrap.
    try driver.feed([0x8C, 0x7F] + Self.vp9Frame, at: 18_000, marker: true)
    try driver.feed([0x8C, 0] + Self.vp9Frame, at: 21_000, marker: true, afterGap: true)
    #expect(driver.frames.suffix(2) == [Self.vp9Frame, Self.vp9Frame])
  }

  @Test func `Descriptors that exceed their packet lose its frame`() throws {
    var driver = FrameDriver(assembler: VP9Assembler())
    let whole: [[UInt8]] = [
      [0x8C], [0x8C, 0x80], [0x2C], [0x2C, 0], [0x5C], [0x5C, 3, 3, 3, 1, 2], [0x0E], [0x0E, 0x10, 1, 2, 3],
      [0x0E, 0x08], [0x0E, 0x08, 2, 0x0C, 1, 2, 3, 0x04], [0x0C],
    ]
    for payload in whole { try driver.feed(payload, at: UInt32(driver.sequence) * 3000, marker: true) }
    #expect(driver.frames == whole.map { _ in nil })
  }

  @Test func `Frames of VP9 that never end are bounded`() throws {
    var driver = FrameDriver(assembler: VP9Assembler())
    try driver.feed([0x08] + Self.vp9Key)
    for _ in 0..<(WebRTCLimits.frameBytes / 1400 + 10) { try driver.feed([0x00] + [UInt8](repeating: 1, count: 1400)) }
    try driver.feed([0x04, 1], marker: true)
    #expect(driver.frames == [nil])
  }
}

@testable import FMP4
import NIOCore
import Support
import Testing

@Suite("Fragments put together from their boxes")
struct FragmentAssemblerTests {
  private func recording() throws -> SyntheticRecording {
    SyntheticRecording([try SyntheticMedia.video(), try SyntheticMedia.audio()])
  }

  private func boxes(_ bytes: [UInt8]) -> [BoxView] { Array(BoxReader(ByteBuffer(bytes: bytes))) }

  private func header(_ type: String, at range: Range<UInt64>) throws -> BoxHeader {
    let size = UInt32(range.upperBound - range.lowerBound)
    return try BoxHeader(ByteBuffer(bytes: BoxBytes.u32(size) + Array(type.utf8)), in: range)
  }

  /// Gives an assembler the boxes in their order.
  private func assemble(_ boxes: [BoxView], _ assembler: inout FragmentAssembler) throws -> [WalkedFragment] {
    var found: [WalkedFragment] = []
    for box in boxes {
      switch box.type {
      case "prft": assembler.reference(box)
      case "moof": try assembler.head(box)
      case "mdat": if let fragment = try assembler.media(box.header) { found.append(fragment) }
      default: break
      }
    }
    return found
  }

  @Test func `A fragment is what was written, with its place and its clock`() throws {
    let recording = try recording()
    var assembler = FragmentAssembler()
    assembler.change(to: recording.tracks)
    let found = try assemble(boxes(recording.bytes), &assembler)
    #expect(found.count == recording.fragments.count)
    for (walked, (written, place)) in zip(found, zip(recording.fragments, recording.places)) {
      #expect(walked.offset == UInt64(place.lowerBound) && walked.end == UInt64(place.upperBound))
      #expect(walked.fragment.sequenceNumber == written.sequenceNumber)
      #expect(walked.fragment.startsSegment == written.startsSegment)
      #expect(walked.fragment.isIndependent == written.isIndependent && walked.fragment.leader == .video)
      #expect(walked.fragment.runs.map(\.samples) == written.runs.map(\.samples))
      #expect(walked.fragment.runs.map(\.baseDecodeTime) == written.runs.map(\.baseDecodeTime))
      #expect(walked.fragment.start == written.start && walked.fragment.payloads.isEmpty)
      #expect((walked.clock != nil) == written.startsSegment)
      if let clock = walked.clock {
        let expected = SyntheticRecording.clock.wallTime(at: clock.mediaTime)
        #expect(abs(clock.wallTime &- expected) <= 1)
      }
      // The media of the runs lies one behind the other, up to the end.
      let lengths = walked.fragment.runs.map(\.byteCount)
      #expect(walked.mediaOffsets.first.map { $0 + UInt64(lengths.reduce(0, +)) } == walked.end)
    }
  }

  @Test func `A head without a movie before it is an error`() throws {
    let moof = try #require(boxes(try recording().bytes).first { $0.type == "moof" })
    var assembler = FragmentAssembler()
    #expect(throws: BoxError(.missing("moov"), [], at: moof.header.range.lowerBound)) { try assembler.head(moof) }
    #expect(!assembler.hasPendingSamples)
  }

  @Test func `Media without a head belongs to nothing`() throws {
    let recording = try recording()
    var assembler = FragmentAssembler()
    assembler.change(to: recording.tracks)
    let mdat = try #require(boxes(recording.bytes).first { $0.type == "mdat" })
    #expect(try assembler.media(mdat.header) == nil)
    // And it is told once.
    try assembler.head(try #require(boxes(recording.bytes).first { $0.type == "moof" }))
    #expect(assembler.hasPendingSamples)
    #expect(try assembler.media(mdat.header) != nil)
    #expect(!assembler.hasPendingSamples)
    #expect(try assembler.media(mdat.header) == nil)
  }

  @Test func `Media that lies outside of its box is refused`() throws {
    let recording = try recording()
    let boxes = boxes(recording.bytes)
    let moof = try #require(boxes.first { $0.type == "moof" })
    let media = try #require(boxes.first { $0.type == "mdat" }).header.range
    for range in [
      media.lowerBound..<media.upperBound - 1, media.lowerBound + 1..<media.upperBound + 1,
      media.upperBound..<media.upperBound + 1000,
    ] {
      var assembler = FragmentAssembler()
      assembler.change(to: recording.tracks)
      try assembler.head(moof)
      let box = try header("mdat", at: range)
      #expect(throws: BoxError(.invalid, ["mdat"], at: range.lowerBound)) { try assembler.media(box) }
    }
  }

  @Test func `What was pending is forgotten where something else follows`() throws {
    let recording = try recording()
    let boxes = boxes(recording.bytes)
    var assembler = FragmentAssembler()
    assembler.change(to: recording.tracks)
    assembler.reference(try #require(boxes.first { $0.type == "prft" }))
    try assembler.head(try #require(boxes.first { $0.type == "moof" }))
    assembler.forgetPending()
    #expect(try assembler.media(try #require(boxes.first { $0.type == "mdat" }).header) == nil)
    // The next fragment does not begin with the forgotten time.
    let second = try #require(boxes.filter { $0.type == "moof" }.dropFirst().first)
    try assembler.head(second)
    let media = try #require(boxes.filter { $0.type == "mdat" }.dropFirst().first)
    let assembled = try assembler.media(media.header)
    let walked = try #require(assembled)
    #expect(walked.clock == nil && walked.offset == second.header.range.lowerBound)
  }

  @Test func `A reference time of a track that is not there tells no clock`() throws {
    let recording = try recording()
    let boxes = boxes(recording.bytes)
    // ISO/IEC 14496-12 §8.16.5: version 1, flags, track, time of day, media time.
    let payload = BoxBytes.u32(1 << 24) + BoxBytes.u32(9) + BoxBytes.u64(0) + BoxBytes.u64(0)
    var assembler = FragmentAssembler()
    assembler.change(to: recording.tracks)
    assembler.reference(try #require(self.boxes(BoxBytes.box("prft", payload)).first))
    try assembler.head(try #require(boxes.first { $0.type == "moof" }))
    let assembled = try assembler.media(try #require(boxes.first { $0.type == "mdat" }).header)
    let walked = try #require(assembled)
    #expect(walked.clock == nil && walked.fragment.startsSegment)
  }

  @Test func `A fragment without the leading track begins and ends where that stood`() throws {
    let recording = try recording()
    var assembler = FragmentAssembler()
    assembler.change(to: recording.tracks)
    let found = try assemble(boxes(recording.bytes), &assembler)
    let end = try #require(found.last?.fragment.end)
    // A fragment of audio alone, by hand: tfhd with the base at the moof, tfdt, trun with one sample of 4 bytes
    // that lies 8 bytes behind the moof's first.
    let run = BoxBytes.box(
      "trun", BoxBytes.u32(0x0301) + [1, 8, 1024, 4].flatMap { BoxBytes.u32($0) })
    let header = BoxBytes.box("tfhd", BoxBytes.u32(0x20000) + BoxBytes.u32(2))
    let traf = BoxBytes.box("traf", header + BoxBytes.fullBox("tfdt", BoxBytes.u32(99)) + run)
    let moof = BoxBytes.box("moof", BoxBytes.fullBox("mfhd", BoxBytes.u32(77)) + traf)
    try assembler.head(try #require(boxes(moof).first))
    let assembled = try assembler.media(try self.header("mdat", at: 0..<1000))
    let walked = try #require(assembled)
    #expect(walked.fragment.start == end && walked.fragment.end == end && walked.fragment.duration == .zero)
    #expect(walked.fragment.runs.map(\.track) == [.audio] && !walked.fragment.isIndependent)
    #expect(walked.fragment.sequenceNumber == 77)
  }
}

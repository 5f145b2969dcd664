@testable import FMP4
import NIOCore
import Support
import Testing

@Suite struct FragmentBoxesTests {
  private func firstFragment(offset: Int32 = 0) throws -> Fragment {
    var segmenter = Segmenter()
    _ = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 2, offset: offset) {
      for case .fragment(let fragment) in segmenter.receive(.sample(sample)) { return fragment }
    }
    throw CodecError(.invalid, "no fragment came out")
  }

  private func bytes(_ buffers: [ByteBuffer]) -> [UInt8] { buffers.flatMap { Array($0.readableBytesView) } }

  @Test func dataOffsetsOfTheInterleavedLayoutPointAtEachRunWithinTheMdat() throws {
    let fragment = try firstFragment(offset: 2000)
    let whole = bytes([FragmentBoxes.interleavedHead(of: fragment)] + fragment.payloads)
    let boxes = try #require(Box.parse(whole))
    #expect(boxes.map(\.type) == ["moof", "mdat"])
    let trafs = boxes[0].all("traf")
    #expect(trafs.count == 2)
    var next = boxes[1].offset + 8
    for traf in trafs {
      let run = try #require(traf.first("trun"))
      #expect(run.number(8) == next)
      let samples = traf.fragmentSamples()
      for (index, sample) in samples.enumerated() {
        // Each sample's bytes are its number.
        #expect(whole[next..<next + sample.size].allSatisfy { $0 == UInt8(index) })
        next += sample.size
      }
    }
    #expect(next == whole.count)
  }

  @Test func singleLayoutsHoldTheSameSamplesAsTheInterleavedOne() throws {
    let fragment = try firstFragment(offset: 1000)
    let interleaved = try #require(Box.parse(bytes([FragmentBoxes.interleavedHead(of: fragment)] + fragment.payloads)))
    for (index, track) in [TrackID.video, .audio].enumerated() {
      let head = try #require(FragmentBoxes.singleHead(of: fragment, track: track))
      let count = fragment.runs[0].samples.count
      let media = index == 0 ? Array(fragment.payloads[..<count]) : Array(fragment.payloads[count...])
      let boxes = try #require(Box.parse(bytes([head] + media)))
      let alone = try #require(boxes[0].first("traf")).fragmentSamples()
      let together = interleaved[0].all("traf")[index].fragmentSamples()
      #expect(alone.map(\.decodeTime) == together.map(\.decodeTime))
      #expect(alone.map(\.size) == together.map(\.size))
      #expect(alone.map(\.offset) == together.map(\.offset))
      #expect(boxes[0].first("traf/trun")?.number(8) == boxes[1].offset + 8)
    }
  }

  @Test func syncSamplesDependOnNothingAndOthersDo() throws {
    let fragment = try firstFragment()
    let boxes = try #require(Box.parse(bytes([FragmentBoxes.interleavedHead(of: fragment)] + fragment.payloads)))
    let video = boxes[0].all("traf")[0].fragmentSamples()
    #expect(video.map(\.flags) == [0x0200_0000] + Array(repeating: 0x0101_0000, count: 5))
    let run = try #require(boxes[0].first("traf/trun"))
    #expect(run.number(0) & 0x404 != 0x404, "never first-sample-flags and sample-flags both")
    #expect(boxes[0].all("traf")[1].fragmentSamples().allSatisfy { $0.flags == 0x0200_0000 })
  }

  @Test func theFirstFragmentOfASegmentTellsWhenItsMediaWasProduced() throws {
    let fragment = try firstFragment(offset: 2000)
    // Media time 1 s was at 2026-11-21T07:24:10.250Z.
    let clock = WallClockAnchor(mediaTime: MediaTime(milliseconds: 1000), wallTime: 1_795_245_850_250_000_000)
    let head = FragmentBoxes.interleavedHead(of: fragment, clock: clock)
    let boxes = try #require(Box.parse(bytes([head] + fragment.payloads)))
    #expect(boxes.map(\.type) == ["prft", "moof", "mdat"])
    #expect(boxes[0].payload.count == 24)
    #expect(boxes[0].number(0) == 1 << 24 | 24, "version 1, a constant offset from real time")
    #expect(boxes[0].number(4) == 1)
    // The first frame is shown at 2000/30000 s, which was 933⅓ ms before the second that the clock speaks of.
    #expect(boxes[0].number(8) == 1_795_245_849 + 2_208_988_800)
    let fraction = Double(boxes[0].number(12)) / 4_294_967_296
    #expect(abs(fraction - 0.316_666_667) < 1e-8)
    #expect(boxes[0].number(16, 8) == 2000)
    let run = try #require(boxes[1].first("traf/trun"))
    #expect(run.number(8) == boxes[2].offset + 8 - boxes[1].offset, "offsets count from the moof")

    let audio = try #require(FragmentBoxes.singleHead(of: fragment, track: .audio, clock: clock))
    let reference = try #require(
      Box.parse(bytes([audio] + fragment.payloads.suffix(fragment.runs[1].samples.count)))?[0])
    #expect(reference.type == "prft")
    #expect(reference.number(4) == 2)
    #expect(reference.number(16, 8) == 0)
    #expect(reference.number(8) == 1_795_245_849 + 2_208_988_800)
    #expect(abs(Double(reference.number(12)) / 4_294_967_296 - 0.25) < 1e-8)
  }

  @Test func laterFragmentsDoNotRepeatIt() throws {
    var fragment = try firstFragment()
    fragment.startsSegment = false
    let clock = WallClockAnchor(mediaTime: .zero, wallTime: 1)
    #expect(
      FragmentBoxes.interleavedHead(of: fragment, clock: clock) == FragmentBoxes.interleavedHead(of: fragment))
    // A track's own segment may begin with any of them.
    let audio = try #require(FragmentBoxes.singleHead(of: fragment, track: .audio, clock: clock))
    #expect(Box.parse(bytes([audio] + fragment.payloads.suffix(fragment.runs[1].samples.count)))?.first?.type == "prft")
  }

  @Test(
    arguments: [
      // 1970, the last second before NTP begins anew in 2036 and the first after it, and a moment before 1970.
      (0, 2_208_988_800, 0), (2_085_978_495_999_999_999, 4_294_967_295, 4_294_967_291),
      (2_085_978_496_000_000_000, 0, 0), (-250_000_000, 2_208_988_799, 3_221_225_472),
    ] as [(Int64, UInt64, UInt64)])
  func networkTimeCountsFrom1900(_ nanoseconds: Int64, _ seconds: UInt64, _ fraction: UInt64) {
    let run = TrackRun(
      track: .video, timescale: 1000, baseDecodeTime: 0, samples: [], byteCount: 0, duration: 0)
    let time = ProducerReferenceTime(
      of: run, anchor: WallClockAnchor(mediaTime: .zero, wallTime: WallTime(nanoseconds: nanoseconds)))
    #expect(time.networkTime == seconds << 32 | fraction)
  }

  @Test func disposableFramesSayThatNoOtherDependsOnThem() throws {
    let frames: [(isSync: Bool, isDisposable: Bool)] = [
      (true, false), (false, false), (false, true), (false, true), (false, false),
    ]
    let run = TrackRun(
      track: .video, timescale: 30_000, baseDecodeTime: 0,
      samples: frames.map {
        RunSample(
          size: 4, duration: 1000, compositionOffset: 1000, isSync: $0.isSync, isDisposable: $0.isDisposable)
      }, byteCount: 20, duration: 5000)
    let fragment = Fragment(
      sequenceNumber: 1, startsSegment: true, isIndependent: true, leader: .video, runs: [run],
      payloads: [ByteBuffer(repeating: 0, count: 20)], start: .zero, duration: .zero, end: .zero)
    let head = FragmentBoxes.interleavedHead(of: fragment)
    let boxes = try #require(Box.parse(bytes([head] + fragment.payloads)))
    let samples = try #require(boxes[0].first("traf")).fragmentSamples()
    #expect(samples.map(\.flags) == [0x0200_0000, 0x0101_0000, 0x0181_0000, 0x0181_0000, 0x0101_0000])
    #expect(try #require(boxes[0].first("traf/trun")).number(0) & 0x404 == 0x400, "sample-flags alone")
    try Golden.check(boxes.map(\.description).joined(separator: "\n") + "\n", "fragment-disposable.txt")

    let movie = try #require(BoxReader(head).first { $0.type == "moof" })
    let read = try FragmentReader.read(movie, timescales: [.video: 30_000])
    #expect(read.map(\.run.samples) == [run.samples])
  }

  @Test func samplesThatNothingIsSaidOfAreBelievedInASmallNumber() throws {
    func read(_ runs: [UInt32], size: UInt8 = 1) throws -> [FragmentReader.LocatedRun] {
      func box(_ type: String, _ payload: [UInt8]) -> [UInt8] {
        bytes([ByteBuffer(integer: UInt32(payload.count + 8))]) + Array(type.utf8) + payload
      }
      let header = box("tfhd", [0, 2, 0, 0x10, 0, 0, 0, 1, 0, 0, 0, size])
      let time = box("tfdt", [0, 0, 0, 0, 0, 0, 0, 0])
      let runs = runs.flatMap { box("trun", [0, 0, 0, 0] + bytes([ByteBuffer(integer: $0)])) }
      let fragment = ByteBuffer(bytes: box("moof", box("traf", header + time + runs)))
      return try FragmentReader.read(
        try #require(BoxReader(fragment).first { _ in true }), timescales: [TrackID(1): 30_000])
    }
    #expect(try read([65_536]).first?.run.samples.count == 65_536)
    #expect(throws: BoxError(.large(size: 65_537), ["moof", "traf", "trun"], at: 52)) { try read([65_537]) }
    #expect(try read([65_535, 1]).count == 2)
    #expect(throws: BoxError(.large(size: 2), ["moof", "traf", "trun"], at: 68)) { try read([65_535, 2]) }
    // Samples without a byte cost time and nothing else.
    #expect(throws: BoxError(.invalid, ["moof", "traf", "trun"], at: 52)) { try read([1], size: 0) }
  }

  @Test func negativeCompositionOffsetsSurvive() throws {
    let run = TrackRun(
      track: .video, timescale: 30_000, baseDecodeTime: 1 << 40,
      samples: [
        RunSample(size: 5, duration: 1000, compositionOffset: -1000, isSync: true),
        RunSample(size: 6, duration: 2000, compositionOffset: 3000, isSync: false),
      ], byteCount: 11, duration: 3000)
    let fragment = Fragment(
      sequenceNumber: 7, startsSegment: true, isIndependent: true, leader: .video, runs: [run],
      payloads: [ByteBuffer(repeating: 0, count: 11)], start: .zero, duration: .zero, end: .zero)
    let boxes = try #require(Box.parse(bytes([FragmentBoxes.interleavedHead(of: fragment)] + fragment.payloads)))
    let samples = try #require(boxes[0].first("traf")).fragmentSamples()
    #expect(samples.map(\.offset) == [-1000, 3000])
    #expect(samples.map(\.decodeTime) == [1 << 40, 1 << 40 + 1000])
    #expect(boxes[0].first("mfhd")?.number(4) == 7)
    #expect(run.earliestPresentationTime == 1 << 40 - 1000)
  }

  @Test func theInitSegmentIsTheGoldenOne() throws {
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    let segment = InitSegment(version: 1, tracks: tracks)
    let boxes = try #require(Box.parse(Array(segment.interleaved.readableBytesView)))
    try Golden.check(boxes.map(\.description).joined(separator: "\n") + "\n", "init-interleaved.txt")
    let single = try #require(Box.parse(Array(segment.single(tracks[1]).readableBytesView)))
    try Golden.check(single.map(\.description).joined(separator: "\n") + "\n", "init-audio.txt")
  }

  @Test func aFragmentIsTheGoldenOne() throws {
    let fragment = try firstFragment(offset: 2000)
    let boxes = try #require(Box.parse(bytes([FragmentBoxes.interleavedHead(of: fragment)] + fragment.payloads)))
    try Golden.check(boxes.map(\.description).joined(separator: "\n") + "\n", "fragment-interleaved.txt")
  }
}

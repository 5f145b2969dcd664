import FMP4
import NIOCore
import Support
import Testing

@Suite("Audio that changes between key frames")
struct ChangedAudioTests {
  /// What comes of one version of the tracks.
  private struct Stretch {
    var fragments: [Fragment] = []
    /// IDs of the tracks in each segment.
    var segments: [Set<TrackID>] = []
    /// Starts of the audio frames, in ticks, and their bytes.
    var audio: [(start: Int64, payload: [UInt8])] = []
  }

  private static let silence: [UInt8] = [0x21, 0x10, 0x04, 0x60, 0x8C, 0x1C]

  private func stretches(_ events: [FragmentEvent]) -> [Stretch] {
    var found: [Stretch] = []
    for event in events {
      switch event {
      case .initialization: found.append(Stretch())
      case .fragment(let fragment): add(fragment, to: &found[found.count - 1])
      default: break
      }
    }
    return found
  }

  private func add(_ fragment: Fragment, to stretch: inout Stretch) {
    if fragment.startsSegment { stretch.segments.append([]) }
    stretch.fragments.append(fragment)
    var payloads = fragment.payloads[...]
    for run in fragment.runs {
      stretch.segments[stretch.segments.count - 1].insert(run.track)
      var time = run.baseDecodeTime
      for sample in run.samples {
        let payload = payloads.removeFirst()
        if run.track == .audio { stretch.audio.append((time, Array(payload.readableBytesView))) }
        time += Int64(sample.duration)
      }
    }
  }

  /// Eight seconds, fed sample by sample: key frames every two, and these tracks from 2.496 s on.
  private func run(
    to changed: [TrackDescription], policy: CutPolicy = CutPolicy(), offset: Int32 = 0
  ) throws -> [FragmentEvent] {
    var segmenter = Segmenter(policy: policy)
    var events = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 8, offset: offset, isSteady: true) {
      if sample.track == .audio, sample.decodeTime == 117 * 1024 { events += segmenter.receive(.tracks(changed)) }
      if sample.track == .audio, sample.decodeTime >= 117 * 1024, changed.count == 1 { continue }
      events += segmenter.receive(.sample(sample))
    }
    return events + segmenter.receive(.end(.finished))
  }

  /// The key frame at 4 s is shown at 192000 of the audio's ticks, or at 195200. What came of the new audio before it is left
  /// out, so it begins where the silence ends, within a frame of the segment.
  @Test(arguments: [false, true], [0, 2000] as [Int32])
  func `It is silent up to the next key frame, and no segment lacks it`(waits: Bool, offset: Int32) throws {
    let first = offset == 0 ? 187 : 190
    var policy = CutPolicy(fragmentsWaitForFollowers: waits)
    policy.keep(partLimit: MediaTime(milliseconds: 250))
    let changed = [try SyntheticMedia.video(), try SyntheticMedia.mono()]
    let events = try run(to: changed, policy: policy, offset: offset)
    let found = stretches(events)
    try #require(found.count == 2)
    #expect(events.count { if case .discontinuity = $0 { true } else { false } } == 1)
    for stretch in found { #expect(stretch.segments == [[.video, .audio], [.video, .audio]]) }
    #expect(found[0].audio.map(\.start) == (0..<first).map { Int64($0) * 1024 })
    #expect(found[0].audio.firstIndex { $0.payload == Self.silence } == 117)
    #expect(found[0].audio[117...].allSatisfy { $0.payload == Self.silence })
    #expect(found[1].audio.map(\.start) == (first..<375).map { Int64($0) * 1024 })
    #expect(found[1].audio.allSatisfy { $0.payload != Self.silence })
    #expect(found[1].fragments.first?.isIndependent == true)
    let frames = found.flatMap(\.fragments).reduce(0) { $0 + ($1.run(of: .video)?.samples.count ?? 0) }
    #expect(frames == 240)
    // Each fragment has the silence of its time: players come to no place without audio.
    let runs = found[0].fragments.compactMap { $0.run(of: .audio) }
    #expect(runs.allSatisfy { $0.duration <= 24_000 }, "\(runs.map(\.duration))")
  }

  @Test func `Audio that goes is silent up to the next key frame`() throws {
    let found = stretches(try run(to: [try SyntheticMedia.video()]))
    try #require(found.count == 2)
    #expect(found[0].segments == [[.video, .audio], [.video, .audio]])
    #expect(found[1].segments == [[.video], [.video]])
  }

  /// Another language is decoded in the same way.
  @Test func `What is only described otherwise loses nothing`() throws {
    var german = try SyntheticMedia.audio()
    german.language = "deu"
    let found = stretches(try run(to: [try SyntheticMedia.video(), german]))
    try #require(found.count == 2)
    #expect(found.flatMap(\.audio).map(\.start) == (0..<375).map { Int64($0) * 1024 })
    #expect(found.flatMap(\.audio).allSatisfy { $0.payload != Self.silence })
    #expect((found[1].audio.first?.start ?? 0) > 192_000 - 1024)
  }

  /// The key frame at 8 s is shown at 387200 of the audio's ticks, more than five seconds after the audio's first frame. No segment
  /// is made of what waits, and what comes late of the time before the key frame is left out as well.
  @Test func `Audio that joins long before a key frame begins with it`() throws {
    let video = try SyntheticMedia.video()
    var segmenter = Segmenter()
    var events = segmenter.receive(.tracks([video]))
    for sample in SyntheticMedia.interleaved(seconds: 14, group: 240, offset: 2000, isSteady: true) {
      if sample.track == .audio, sample.decodeTime < 117 * 1024 { continue }
      if sample.track == .audio, sample.decodeTime == 117 * 1024 {
        events += segmenter.receive(.tracks([video, try SyntheticMedia.audio()]))
      }
      events += segmenter.receive(.sample(sample))
    }
    let found = stretches(events + segmenter.receive(.end(.finished)))
    try #require(found.count == 2)
    #expect(found[1].segments.allSatisfy { $0 == [.video, .audio] })
    #expect(found[1].audio.map(\.start) == (378..<656).map { Int64($0) * 1024 })
    #expect(found[1].fragments.first?.isIndependent == true)
  }

  /// A relay switches to another source, of which the audio comes a second before the key frame.
  @Test func `Where the video changes as well, both begin with its key frame`() throws {
    let video = try SyntheticMedia.video(timescale: 60_000, frameDuration: 2000)
    let mono = try SyntheticMedia.mono()
    var segmenter = Segmenter()
    var events = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 2, isSteady: true) {
      events += segmenter.receive(.sample(sample))
    }
    events += segmenter.receive(.tracks([try SyntheticMedia.video(), mono]))
    for index in 94..<141 { events += segmenter.receive(.sample(SyntheticMedia.audio(index))) }
    events += segmenter.receive(.tracks([video, mono]))
    for index in 0..<60 {
      events += segmenter.receive(.sample(SyntheticMedia.frame(90 + index, group: 90, duration: 2000, isSteady: true)))
      let audio = 141 + index * 3 / 2
      for number in audio..<(141 + (index + 1) * 3 / 2) {
        events += segmenter.receive(.sample(SyntheticMedia.audio(number)))
      }
    }
    events += segmenter.receive(.end(.finished))
    let found = stretches(events)
    try #require(found.count == 2)
    #expect(found.flatMap(\.segments).allSatisfy { $0 == [.video, .audio] })
    #expect(found[1].fragments.first?.start == MediaTime(milliseconds: 3000))
    #expect(found[1].audio.first?.start == Int64(140 * 1024))
  }

  /// A decoder is so many seconds behind the video, of which fragments are out when its audio changes.
  @Test(arguments: [false, true], [0.415, 1.3])
  func `Silence goes on from the last frame of audio that lags`(waits: Bool, lag: Double) throws {
    func arrival(_ sample: Sample) -> Double {
      sample.track == .audio ? Double(sample.decodeTime) / 48_000 + lag : Double(sample.decodeTime) / 30_000
    }
    var segmenter = Segmenter(policy: CutPolicy(fragmentsWaitForFollowers: waits))
    var events = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    let changed = [try SyntheticMedia.video(), try SyntheticMedia.mono()]
    for sample in SyntheticMedia.interleaved(seconds: 8, isSteady: true).sorted(by: { arrival($0) < arrival($1) }) {
      if sample.track == .audio, sample.decodeTime == 117 * 1024 { events += segmenter.receive(.tracks(changed)) }
      events += segmenter.receive(.sample(sample))
    }
    let found = stretches(events + segmenter.receive(.end(.finished)))
    try #require(found.count == 2)
    #expect(found[0].audio.map(\.start) == (0..<187).map { Int64($0) * 1024 })
    #expect(found[0].audio.firstIndex { $0.payload == Self.silence } == 117)
    #expect(found[1].audio.map(\.start) == (187..<375).map { Int64($0) * 1024 })
  }

  /// A multiplexer sends so many seconds of video ahead of its audio, which changes in the second segment, or begins there.
  @Test(arguments: [false, true], [1.2, 2.6])
  func `Audio that joins more than a segment behind begins where it joined`(begins: Bool, lag: Double) throws {
    func arrival(_ sample: Sample) -> Double {
      sample.track == .audio ? Double(sample.decodeTime) / 48_000 + lag : Double(sample.decodeTime) / 30_000
    }
    let video = try SyntheticMedia.video()
    var segmenter = Segmenter(policy: CutPolicy(segmentTarget: MediaTime(milliseconds: 500)))
    var events = segmenter.receive(.tracks(begins ? [video] : [video, try SyntheticMedia.audio()]))
    let all = SyntheticMedia.interleaved(seconds: 8, group: 15, isSteady: true)
    for sample in all.sorted(by: { arrival($0) < arrival($1) }) {
      if begins, sample.track == .audio, sample.decodeTime < 117 * 1024 { continue }
      if sample.track == .audio, sample.decodeTime == 117 * 1024 {
        events += segmenter.receive(.tracks([video, try SyntheticMedia.mono()]))
      }
      events += segmenter.receive(.sample(sample))
    }
    let found = stretches(events + segmenter.receive(.end(.finished)))
    try #require(found.count == 2)
    let start = try #require(found[1].fragments.first).start.rescaled(to: 48_000)
    let heard = found[1].audio.map(\.start)
    #expect(heard.first.map { $0 > start - 1024 && $0 <= start } == true, "\(heard.first ?? -1), \(start)")
    #expect(heard == ((heard.first ?? 0) / 1024..<375).map { $0 * 1024 })
  }

  /// The audio changes and is back as it was before the next key frame, a little behind the video.
  @Test func `Audio that is back keeps its times behind the silence`() throws {
    let video = try SyntheticMedia.video()
    let (stereo, mono) = (try SyntheticMedia.audio(), try SyntheticMedia.mono())
    var segmenter = Segmenter()
    var events = segmenter.receive(.tracks([video, stereo]))
    var late: [Sample] = []
    for sample in SyntheticMedia.interleaved(seconds: 6, isSteady: true) {
      guard sample.track == .audio else {
        events += segmenter.receive(.sample(sample))
        continue
      }
      late.append(sample)
      guard late.count > 10 else { continue }
      let next = late.removeFirst()
      if next.decodeTime == 117 * 1024 { events += segmenter.receive(.tracks([video, mono])) }
      if next.decodeTime == 140 * 1024 { events += segmenter.receive(.tracks([video, stereo])) }
      events += segmenter.receive(.sample(next))
    }
    let found = stretches(events + segmenter.receive(.end(.finished)))
    try #require(found.count == 1)
    let heard = found[0].audio.filter { $0.payload != Self.silence }
    #expect(heard.allSatisfy { $0.start % 1024 == 0 && !(117 * 1024..<140 * 1024).contains($0.start) })
    // Ten of 281 have not come at the end. What the silence had covered when the audio came back is missing.
    #expect(heard.last?.start == Int64(270 * 1024))
    #expect(heard.count { $0.start >= 140 * 1024 } > 110)
  }

  /// For so many frames, of which some fragments are out or none.
  @Test(arguments: [false, true], [1, 5, 12, 40])
  func `Audio that is back goes on without a hole`(waits: Bool, frames: Int) throws {
    let video = try SyntheticMedia.video()
    let (stereo, mono) = (try SyntheticMedia.audio(), try SyntheticMedia.mono())
    var segmenter = Segmenter(policy: CutPolicy(fragmentsWaitForFollowers: waits))
    var events = segmenter.receive(.tracks([video, stereo]))
    for sample in SyntheticMedia.interleaved(seconds: 8, isSteady: true) {
      let place = sample.track == .audio ? sample.decodeTime / 1024 : 0
      if place == 117 { events += segmenter.receive(.tracks([video, mono])) }
      if place == 117 + Int64(frames) { events += segmenter.receive(.tracks([video, stereo])) }
      events += segmenter.receive(.sample(sample))
    }
    let found = stretches(events + segmenter.receive(.end(.finished)))
    try #require(found.count == 1)
    #expect(found[0].audio.map(\.start) == (0..<375).map { Int64($0) * 1024 })
    let silent = found[0].audio.indices.filter { found[0].audio[$0].payload == Self.silence }
    // A fragment of video that is out may end behind the first frame that is back.
    #expect(silent.first == 117 && (frames...(frames + 1)).contains(silent.count), "\(silent)")
  }

  /// What a publisher sends last may never come: its audio is then behind its video.
  @Test func `Nothing is put in place of audio that a lost publisher did not send`() throws {
    var segmenter = Segmenter()
    var events = segmenter.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 3, isSteady: true)
    where sample.track == .video || sample.decodeTime < 129 * 1024 {
      events += segmenter.receive(.sample(sample))
    }
    events += segmenter.interrupt()
    let found = stretches(events)
    #expect(found.flatMap(\.audio).map(\.start) == (0..<129).map { Int64($0) * 1024 })
    #expect(found.flatMap(\.audio).allSatisfy { $0.payload != Self.silence })
  }
}

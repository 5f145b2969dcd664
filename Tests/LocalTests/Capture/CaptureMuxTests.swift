import Base
@testable import FMP4
@testable import Local
import NIOCore
import Publishing
import Support
import Testing

/// Times are milliseconds behind the moment at which the first key frame is decoded.
@Suite("Where video and audio of a capture meet")
struct CaptureMuxTests {
  private static let start: MonotonicTime = 5_000_000_000
  private static let reading = ClockReading(wall: 1_795_245_850_000_000_000, monotonic: 0)

  /// What a publication is given while `body` uses its mux.
  private func captured(
    video: Bool = true, audio: Bool = true, _ body: @escaping @Sendable (CaptureMux) throws -> Void
  ) async throws -> LimitedGate {
    let gate = LimitedGate()
    let publication = LocalPublication(
      name: try #require(StreamName("cam")), kind: .capture, gate: gate, logger: .silent)
    let mux = CaptureMux(publication, reading: Self.reading, wantsVideo: video, wantsAudio: audio)
    let reason = await publication.run { try body(mux) }
    #expect(reason == .finished)
    return gate
  }

  private static func h264(_ record: [UInt8] = PublishedRecord.avc25) throws -> Codec {
    try Codec(.h264, record: ByteBuffer(bytes: record))
  }

  private static func describe(_ mux: CaptureMux, audio: Bool = true) throws {
    mux.describe(video: try h264(), rotation: .none)
    if audio { mux.describe(audio: try Codec(.aac, record: ByteBuffer(bytes: PublishedRecord.aac48)), rate: 48_000) }
  }

  private static func frame(_ mux: CaptureMux, _ decode: Int64, shown: Int64? = nil, isSync: Bool = false) {
    mux.video(
      presentation: start + (shown ?? decode) * 1_000_000, decode: start + decode * 1_000_000, isSync: isSync,
      isDisposable: false, payload: ByteBuffer(bytes: [1]))
  }

  /// Frame number `index` of audio that begins at this time.
  private static func audio(_ mux: CaptureMux, _ index: Int64, from begin: Int64 = 0) {
    mux.audio(
      start: start + begin * 1_000_000, samples: index * 1024, duration: 1024, payload: ByteBuffer(bytes: [2]))
  }

  private func times(_ gate: LimitedGate, _ track: TrackID) -> [Int64] {
    gate.samples.filter { $0.track == track }.map(\.decodeTime)
  }

  @Test func `It begins with the first key frame, its clock and its tracks`() async throws {
    let gate = try await captured { mux in
      try Self.describe(mux)
      Self.frame(mux, -40)
      Self.frame(mux, 0, shown: 80, isSync: true)
      Self.frame(mux, 40, shown: 40)
    }
    guard case .clock(let anchor)? = gate.events.first, case .tracks(let tracks) = gate.events[1] else {
      Issue.record("the clock and the tracks come first")
      return
    }
    #expect(anchor == WallClockAnchor(mediaTime: .zero, wallTime: Self.reading.wallTime(at: Self.start)))
    #expect(tracks.map(\.id) == [.video, .audio] && tracks.map(\.timescale) == [90_000, 48_000])
    #expect(gate.samples.map(\.decodeTime) == [0, 3600] && gate.samples.map(\.presentationTime) == [7200, 3600])
    #expect(gate.samples.map(\.isSync) == [true, false])
  }

  @Test func `Frames wait until the audio is described, where there is to be any`() async throws {
    let gate = try await captured { mux in
      try Self.describe(mux, audio: false)
      Self.frame(mux, -1000, isSync: true)
      try Self.describe(mux)
      Self.frame(mux, 0, isSync: true)
    }
    #expect(times(gate, .video) == [0] && gate.tracks.count == 1)
    let silent = try await captured(audio: false) { mux in
      try Self.describe(mux, audio: false)
      Self.frame(mux, 0, isSync: true)
    }
    #expect(silent.tracks.map { $0.map(\.id) } == [[.video]] && times(silent, .video) == [0])
  }

  @Test func `A decode time that does not rise is lifted by a tick and the frame is shown when it should be`()
    async throws
  {
    let gate = try await captured(audio: false) { mux in
      try Self.describe(mux, audio: false)
      Self.frame(mux, 0, isSync: true)
      Self.frame(mux, 0, shown: 10)
      Self.frame(mux, -20, shown: 20)
    }
    #expect(times(gate, .video) == [0, 1, 2])
    #expect(gate.samples.map(\.presentationTime) == [0, 900, 1800])
  }

  @Test func `Audio runs at most a quarter of a second ahead of the frames`() async throws {
    let gate = try await captured { mux in
      try Self.describe(mux)
      Self.frame(mux, 0, isSync: true)
      for index in 0..<47 as Range<Int64> { Self.audio(mux, index) }
    }
    // 250 ms are 12000 ticks.
    #expect(times(gate, .audio) == (0..<12).map { $0 * 1024 })
    let later = try await captured { mux in
      try Self.describe(mux)
      Self.frame(mux, 0, isSync: true)
      for index in 0..<47 as Range<Int64> { Self.audio(mux, index) }
      Self.frame(mux, 40)
    }
    #expect(times(later, .audio) == (0..<14).map { $0 * 1024 })
    #expect(later.samples.last?.track == .audio, "what the frame lets go comes behind it")
  }

  @Test func `At the end everything is given`() async throws {
    let gate = try await captured { mux in
      try Self.describe(mux)
      Self.frame(mux, 0, isSync: true)
      for index in 0..<47 as Range<Int64> { Self.audio(mux, index) }
      mux.finish()
      mux.finish()
    }
    #expect(times(gate, .audio) == (0..<47).map { $0 * 1024 })
    let nothing = try await captured { mux in
      try Self.describe(mux)
      Self.audio(mux, 0)
      mux.finish()
    }
    #expect(nothing.samples.isEmpty && nothing.tracks.isEmpty, "no frame ever came")
  }

  @Test func `Audio from before the first frame is left out`() async throws {
    let gate = try await captured { mux in
      try Self.describe(mux)
      for index in 0..<4 as Range<Int64> { Self.audio(mux, index, from: -50) }
      Self.frame(mux, 0, isSync: true)
    }
    // 50 ms are 2400 ticks: the first three frames begin before 0.
    #expect(times(gate, .audio) == [3 * 1024 - 2400])
  }

  @Test func `Audio that has waited for five seconds waits no more`() async throws {
    let gate = try await captured { mux in
      try Self.describe(mux)
      Self.frame(mux, 0, isSync: true)
      for index in 0..<300 as Range<Int64> { Self.audio(mux, index) }
    }
    // The newest was heard at 6379 ms, so all up to 1379 ms are given.
    #expect(times(gate, .audio) == (0..<65).map { $0 * 1024 })
  }

  @Test func `Audio that is heard a second time is given once`() async throws {
    let gate = try await captured(video: false) { mux in
      try Self.describe(mux)
      for index in [0, 1, 1, 0, 2] as [Int64] { Self.audio(mux, index) }
    }
    #expect(times(gate, .audio) == [0, 1024, 2048])
  }

  @Test func `Audio alone begins with its first frame`() async throws {
    let gate = try await captured(video: false) { mux in
      Self.audio(mux, 0, from: -100)
      mux.describe(audio: try Codec(.aac, record: ByteBuffer(bytes: PublishedRecord.aac48)), rate: 48_000)
      for index in 0..<3 as Range<Int64> { Self.audio(mux, index) }
    }
    #expect(gate.tracks.map { $0.map(\.id) } == [[.audio]] && times(gate, .audio) == [0, 1024, 2048])
    #expect(gate.samples.allSatisfy { $0.isSync && $0.duration == 1024 })
  }

  @Test func `Another description is told at once, the same one not`() async throws {
    let gate = try await captured(audio: false) { mux in
      try Self.describe(mux, audio: false)
      Self.frame(mux, 0, isSync: true)
      try Self.describe(mux, audio: false)
      mux.describe(video: try Self.h264(PublishedRecord.avc2997), rotation: .none)
      mux.describe(video: try Self.h264(PublishedRecord.avc2997), rotation: .clockwise90)
    }
    #expect(gate.tracks.count == 3)
    #expect(gate.tracks.last?.first?.rotation == .clockwise90)
  }
}

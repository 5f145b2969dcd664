import Base
import FMP4
import Glibc
import Logging
import NIOCore
import Publishing
import Support
import Synchronization
import Testing
@testable import Transcode

/// Audio that outputs do not carry, before the stream sees it.
@Suite struct DecodedMediaSinkTests {
  /// A stream that notes what it is given.
  private final class Stream: MediaSink {
    let events = Mutex<[MediaEvent]>([])
    let warnings = Mutex<[String]>([])
    let closesAtTracks: Bool
    let anonymousHost: String?
    let isConnected = Mutex(false)
    let mostHeldAtStart: Int
    let held = Mutex<[Int]>([])

    init(closesAtTracks: Bool = false, of host: String? = nil, most: Int = .max) {
      (self.closesAtTracks, anonymousHost, mostHeldAtStart) = (closesAtTracks, host, most)
    }

    func holds(_ bytes: Int) { held.withLock { $0.append(bytes) } }

    func connected() { isConnected.withLock { $0 = true } }

    func receive(_ event: MediaEvent) -> SinkVerdict {
      events.withLock { $0.append(event) }
      if closesAtTracks, case .tracks = event { return .closed(.replaced) }
      return .accepted
    }

    let lostFrames = Mutex(0)
    func lost(_ kind: MediaKind) { lostFrames.withLock { $0 += 1 } }
    func warn(_ warning: PublicationWarning) { warnings.withLock { $0.append("+ \(warning)") } }
    func withdraw(_ warning: PublicationWarning) { warnings.withLock { $0.append("- \(warning)") } }
    /// How many events had come before each that was carried beside them.
    let carried = Mutex<[Int]>([])
    func carries(_ event: InBandEvent) {
      let before = events.withLock { $0.count }
      carried.withLock { $0.append(before) }
    }

    var samples: [Sample] {
      events.withLock { $0.compactMap { if case .sample(let sample) = $0 { sample } else { nil } } }
    }
    var tracks: [[String]] {
      events.withLock { events in
        events.compactMap { event in
          guard case .tracks(let tracks) = event else { return nil }
          return tracks.map {
            "\($0.id.rawValue) \($0.codec.name) \($0.timescale) \($0.codec.audio?.channels ?? 0) \($0.language)"
          }
        }
      }
    }
    var hasEnded: Bool { events.withLock { if case .end? = $0.last { true } else { false } } }

    func audio(_ id: TrackID = .audio) -> [Sample] { samples.filter { $0.track == id } }

    func until(_ isMet: () -> Bool) async throws {
      for _ in 0..<500 {
        if isMet() { return }
        try await Task.sleep(for: .milliseconds(20))
      }
      Issue.record("it did not come in 10 s: \(tracks), \(samples.count) samples")
    }
  }

  private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  /// Workers for which there is room.
  private let room = Counter(5)

  private final class Counter: Sendable {
    let left: Mutex<Int>
    init(_ left: Int) { self.left = Mutex(left) }
  }

  private func sink(_ stream: Stream, _ launcher: WorkerLauncher) -> DecodedMediaSink {
    let room = WorkerRoom(
      take: { [room] _, _ in
        room.left.withLock { left in
          guard left > 0 else { return .descriptors }
          left -= 1
          return nil
        }
      }, giveBack: { [room] _, _ in room.left.withLock { $0 += 1 } })
    return DecodedMediaSink(stream, as: AudioSpecification(.aac), launcher: launcher, room: room, logger: logger)
  }

  private func telephone(_ id: TrackID = .audio, channels: UInt8 = 1, language: String = "deu") throws
    -> TrackDescription
  {
    let codec = try Codec(.alaw, record: ByteBuffer(bytes: G711.record(sampleRate: 8000, channels: channels)))
    return TrackDescription(id: id, codec: codec, timescale: 8000, language: language)
  }

  /// Silence of 20 ms.
  private func quiet(_ index: Int, _ id: TrackID = .audio, channels: Int = 1) -> MediaEvent {
    .sample(
      Sample(
        track: id, decodeTime: Int64(index) * 160, duration: 160, isSync: true,
        payload: ByteBuffer(repeating: 0xD5, count: 160 * channels)))
  }

  private let clock = MediaEvent.clock(WallClockAnchor(mediaTime: .zero, wallTime: WallTime(nanoseconds: 0)))

  @Test func `The stream gets AAC with the times, the language and all of the sound`() async throws {
    let stream = Stream()
    let sink = sink(stream, WorkerThread.launcher())
    #expect(sink.receive(clock) == .accepted)
    _ = sink.receive(.tracks([try SyntheticMedia.video(), try telephone()]))
    for index in 0..<100 {
      if index % 5 < 3 { _ = sink.receive(.sample(SyntheticMedia.frame(index / 5 * 3 + index % 5))) }
      _ = sink.receive(quiet(index))
    }
    try await stream.until { !stream.tracks.isEmpty }
    #expect(!stream.hasEnded)
    _ = sink.receive(.end(.finished))
    try await stream.until { stream.hasEnded }
    #expect(stream.tracks == [["1 H.264 30000 0 und", "2 AAC 48000 1 deu"]])
    let audio = stream.audio()
    #expect(audio.map(\.decodeTime) == (0..<audio.count).map { Int64($0) * 1024 })
    #expect(audio.allSatisfy { $0.duration == 1024 && $0.isSync })
    // Two seconds, up to whole frames.
    #expect((94...95).contains(audio.count), "\(audio.count) frames")
    #expect(stream.samples.filter { $0.track == .video }.map(\.decodeTime) == (0..<60).map { Int64($0) * 1000 })
    #expect(stream.warnings.withLock { $0 } == [])
  }

  @Test func `What waits for a decoder is counted, and what would be more than it may is lost`() async throws {
    let stream = Stream(most: 256 << 10)
    let sink = sink(stream, WorkerLauncher { () throws(WorkerFailure) in throw WorkerFailure("start it", ENOMEM) })
    _ = sink.receive(clock)
    _ = sink.receive(.tracks([try telephone()]))
    for index in 0..<100 {
      let payload = ByteBuffer(repeating: 0xD5, count: 8000)
      let time = Int64(index) * 8000
      _ = sink.receive(
        .sample(Sample(track: .audio, decodeTime: time, duration: 8000, isSync: true, payload: payload)))
    }
    let most = stream.held.withLock { $0.max() ?? 0 }
    #expect((128 << 10...256 << 10).contains(most), "\(most) bytes")
    #expect(stream.lostFrames.withLock { $0 } > 50)
    _ = sink.receive(.end(.finished))
    try await stream.until { stream.hasEnded }
  }

  /// The worker has not begun when ten seconds have come and their track is gone.
  @Test func `Frames of a track that ends before they are decoded are counted as lost`() async throws {
    let stream = Stream()
    let sink = sink(stream, WorkerThread.launcher())
    _ = sink.receive(clock)
    _ = sink.receive(.tracks([try SyntheticMedia.video(), try telephone()]))
    _ = sink.receive(.sample(SyntheticMedia.frame(0)))
    for index in 0..<500 { _ = sink.receive(quiet(index)) }
    _ = sink.receive(.tracks([try SyntheticMedia.video()]))
    let whole = 10 * 48_000 / 1024
    try await stream.until { stream.lostFrames.withLock { $0 } + stream.audio().count >= whole - 1 }
    try await stream.until { room.left.withLock { $0 } == 5 }
    let all = stream.lostFrames.withLock { $0 } + stream.audio().count
    #expect((whole - 1...whole + 2).contains(all) && stream.lostFrames.withLock { $0 } > 0, "\(all) of \(whole)")
    // After the end nothing more is told.
    _ = sink.receive(.end(.finished))
    #expect(stream.hasEnded)
  }

  @Test func `What is carried beside the samples keeps its place among them, while the start waits, too`() async throws
  {
    let stream = Stream()
    let sink = sink(stream, WorkerThread.launcher())
    _ = sink.receive(clock)
    _ = sink.receive(.tracks([try SyntheticMedia.video(), try telephone()]))
    _ = sink.receive(.sample(SyntheticMedia.frame(0)))
    sink.carries(.captions(.video, CaptionServices()))
    for index in 0..<50 { _ = sink.receive(quiet(index)) }
    try await stream.until { !stream.tracks.isEmpty }
    // After the clock, the tracks and a frame.
    #expect(stream.carried.withLock { $0 } == [3])
    sink.carries(.captions(.video, CaptionServices()))
    #expect(stream.carried.withLock { $0.count } == 2)
    _ = sink.receive(.end(.shutdown))
  }

  @Test func `While audio alone is awaited, cues are held up to a bound`() {
    var start = HeldStart(now: .zero)
    let cue = StreamCue(pid: 500, command: .timeSignal, section: [UInt8](repeating: 0, count: 4096))
    for _ in 0..<10_000 { start.hold(.cue(cue)) }
    #expect(start.events.count == PublicationLimits.heldBytes / 4096)
    #expect(start.isOver(now: .zero))
    // Of fewer, where the stream has less room.
    var small = HeldStart(now: .zero, most: 8192)
    for _ in 0..<10 { small.hold(.cue(cue)) }
    #expect(small.bytes == 8192 && small.isOver(now: .zero))
  }

  @Test func `What outputs carry passes at once, without a worker`() throws {
    let stream = Stream()
    let sink = sink(stream, WorkerLauncher { () throws(WorkerFailure) in throw WorkerFailure("start", ENOENT) })
    _ = sink.receive(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]))
    for sample in SyntheticMedia.interleaved(seconds: 1) { _ = sink.receive(.sample(sample)) }
    _ = sink.receive(.end(.finished))
    #expect(stream.samples.count == 76 && stream.tracks.count == 1 && stream.hasEnded)
  }

  @Test func `A worker that dies costs its track some frames, and is told until another one works`() async throws {
    let starts = Mutex(0)
    let launcher = WorkerThread.launcher { socket in
      let isFirst = starts.withLock { starts in
        starts += 1
        return starts == 1
      }
      guard isFirst else { return TranscodeWorker(descriptor: socket).run() }
      // It states its configuration, takes some frames and ends.
      var bytes = [UInt8](repeating: 0, count: 2048)
      _ = recv(socket, &bytes, bytes.count, 0)
      let track = Array(
        TranscodeWire.encode(.track(rung: 0, record: ByteBuffer(bytes: [0x11, 0x88]))).readableBytesView)
      _ = send(socket, track, track.count, Int32(MSG_NOSIGNAL))
      _ = recv(socket, &bytes, bytes.count, 0)
    }
    let stream = Stream()
    let sink = sink(stream, launcher)
    _ = sink.receive(.tracks([try SyntheticMedia.video(), try telephone()]))
    try await stream.until { !stream.tracks.isEmpty }
    var index = 0
    try await stream.until {
      _ = sink.receive(.sample(SyntheticMedia.frame(index)))
      _ = sink.receive(quiet(index))
      index += 1
      return !stream.audio().isEmpty
    }
    // No video waited.
    #expect(stream.samples.filter { $0.track == .video }.count == index)
    _ = sink.receive(.end(.connectionLost("")))
    try await stream.until { stream.hasEnded }
    let told = "audio in G.711 A-law is missing for now: the process that decodes it was lost and is started again"
    #expect(stream.warnings.withLock { $0 } == ["+ \(told)", "- \(told)"])
    // What came later is at its time: a whole frame of AAC behind each other.
    let audio = stream.audio()
    #expect(zip(audio, audio.dropFirst()).allSatisfy { $1.decodeTime - $0.decodeTime == 1024 })
    #expect(try #require(audio.first).decodeTime % 960 == 0, "with a frame of the source")
  }

  @Test func `Without an answer of the worker the stream begins with its video after two seconds`() async throws {
    let launcher = WorkerThread.launcher { socket in
      var bytes = [UInt8](repeating: 0, count: 4096)
      while recv(socket, &bytes, bytes.count, 0) > 0 {}
    }
    let stream = Stream()
    let sink = sink(stream, launcher)
    let began = ContinuousClock.now
    _ = sink.receive(.tracks([try SyntheticMedia.video(), try telephone()]))
    var index = 0
    try await stream.until {
      _ = sink.receive(.sample(SyntheticMedia.frame(index)))
      _ = sink.receive(quiet(index))
      index += 1
      return !stream.samples.isEmpty
    }
    #expect(ContinuousClock.now - began >= .seconds(2))
    #expect(stream.tracks == [["1 H.264 30000 0 und"]])
    #expect(stream.samples.map(\.decodeTime) == (0..<stream.samples.count).map { Int64($0) * 1000 })
    _ = sink.receive(.end(.replaced))
    #expect(stream.hasEnded)
  }

  /// As of a publisher that sends far faster than it plays, on a machine that is busy with other things.
  @Test func `A minute that comes at once is decoded to its end by a worker that is served late`() async throws {
    let launcher = WorkerThread.launcher { socket in
      usleep(1_000_000)
      TranscodeWorker(descriptor: socket).run()
    }
    let stream = Stream()
    let sink = sink(stream, launcher)
    _ = sink.receive(.tracks([try telephone()]))
    for index in 0..<3000 { _ = sink.receive(quiet(index)) }
    _ = sink.receive(.end(.finished))
    try await stream.until { stream.hasEnded }
    let times = stream.audio().map(\.decodeTime)
    #expect(times == (0..<times.count).map { Int64($0) * 1024 })
    #expect((2812...2814).contains(times.count), "\(times.count) frames")
    #expect(stream.warnings.withLock { $0 } == [] && stream.lostFrames.withLock { $0 } == 0)
  }

  @Test func `What is left out since the worker takes nothing is counted and told`() async throws {
    let launcher = WorkerThread.launcher { socket in
      var bytes = [UInt8](repeating: 0, count: 4096)
      while recv(socket, &bytes, bytes.count, 0) > 0 {}
    }
    let stream = Stream()
    let sink = sink(stream, launcher)
    _ = sink.receive(.tracks([try telephone()]))
    for index in 0..<TranscodeLimits.audioBacklogEntries + 20 { _ = sink.receive(quiet(index)) }
    let told = "audio in G.711 A-law has holes, since this machine was too busy to decode all of it; free a core for it"
    #expect(stream.warnings.withLock { $0 } == ["+ \(told)"])
    let lost = stream.lostFrames.withLock { $0 }
    #expect((TranscodeLimits.audioBacklogEntries - 20...TranscodeLimits.audioBacklogEntries).contains(lost), "\(lost)")
    // Half a minute later it is no longer true.
    for index in 20..<1600 { _ = sink.receive(quiet(TranscodeLimits.audioBacklogEntries + index)) }
    #expect(stream.warnings.withLock { $0 } == ["+ \(told)", "- \(told)"])
    _ = sink.receive(.end(.replaced))
  }

  @Test func `Another number of channels in the middle is another track, without a hole`() async throws {
    let stream = Stream()
    let sink = sink(stream, WorkerThread.launcher())
    let video = try SyntheticMedia.video()
    _ = sink.receive(.tracks([video, try telephone()]))
    for index in 0..<50 { _ = sink.receive(quiet(index)) }
    _ = sink.receive(.tracks([video, try telephone(channels: 2)]))
    for index in 50..<100 { _ = sink.receive(quiet(index, channels: 2)) }
    _ = sink.receive(.end(.finished))
    try await stream.until { stream.hasEnded }
    #expect(stream.tracks.map { $0.last ?? "" } == ["2 AAC 48000 1 deu", "2 AAC 48000 2 deu"])
    let times = stream.audio().map(\.decodeTime)
    #expect(times.contains(48_000), "the second half begins where it began")
    let steps = zip(times, times.dropFirst()).map { $1 - $0 }
    #expect(steps.filter { $0 != 1024 }.count <= 1 && steps.allSatisfy { $0 > 0 && $0 <= 1024 })
  }

  @Test func `A stream that closes is told to the publisher, and its workers end`() async throws {
    let ended = Mutex(0)
    let launcher = WorkerThread.launcher { socket in
      TranscodeWorker(descriptor: socket).run()
      ended.withLock { $0 += 1 }
    }
    let stream = Stream(closesAtTracks: true)
    let sink = sink(stream, launcher)
    _ = sink.receive(.tracks([try telephone()]))
    try await stream.until { !stream.tracks.isEmpty }
    #expect(sink.receive(quiet(0)) == .closed(.replaced))
    try await stream.until { ended.withLock { $0 } == 1 }
  }

  @Test func `Without room for its worker audio is left out and told; room is given back`() async throws {
    room.left.withLock { $0 = 1 }
    let stream = Stream()
    let sink = sink(stream, WorkerThread.launcher())
    let tracks = [try SyntheticMedia.video(), try telephone(), try telephone(TrackID(.audio, 2))]
    _ = sink.receive(.tracks(tracks))
    try await stream.until { !stream.tracks.isEmpty }
    #expect(stream.tracks.last?.count == 2)
    let told = "+ audio is left out: G.711 A-law: the server has no file descriptors for its worker"
    #expect(stream.warnings.withLock { $0 } == [told])
    // The one that was left out ends.
    _ = sink.receive(.tracks(Array(tracks.prefix(2))))
    #expect(stream.warnings.withLock { $0.map { $0.prefix(1) } } == ["+", "-"])
    _ = sink.receive(.end(.shutdown))
    try await stream.until { room.left.withLock { $0 } == 1 }
  }

  @Test func `Of an address without a key audio is left out when its share is taken`() async throws {
    let shared = WorkerRoom.unlimited.shared(places: 4)
    var (streams, sinks): ([Stream], [DecodedMediaSink]) = ([], [])
    for host in ["192.0.2.1", "192.0.2.1", "192.0.2.1", nil] {
      let stream = Stream(of: host)
      let sink = DecodedMediaSink(
        stream, as: AudioSpecification(.aac), launcher: WorkerThread.launcher(), room: shared, logger: logger)
      sink.connected()
      _ = sink.receive(.tracks([try SyntheticMedia.video(), try telephone()]))
      #expect(stream.isConnected.withLock { $0 })
      streams.append(stream)
      sinks.append(sink)
    }
    let told = streams.map { $0.warnings.withLock { $0 } }
    #expect(told.map(\.count) == [0, 0, 1, 0])
    #expect(told[2].first?.contains("publish with a key") == true)
    for sink in sinks { _ = sink.receive(.end(.shutdown)) }
  }

  @Test func `Four tracks are decoded at a time; the fifth is left out and told`() async throws {
    let stream = Stream()
    let sink = sink(stream, WorkerThread.launcher())
    let tracks = try (1...5).map { try telephone(TrackID(.audio, $0), language: "und") }
    _ = sink.receive(.tracks(tracks))
    try await stream.until { !stream.tracks.isEmpty }
    for index in 0..<20 { for track in tracks { _ = sink.receive(quiet(index, track.id)) } }
    _ = sink.receive(.end(.finished))
    try await stream.until { stream.hasEnded }
    #expect(stream.tracks.last?.count == 4)
    #expect(stream.warnings.withLock { $0.count } == 1)
    for track in tracks[..<4] { #expect(stream.audio(track.id).count >= 18) }
  }
}

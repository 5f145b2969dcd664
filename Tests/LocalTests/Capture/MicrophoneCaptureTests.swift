import Base
import FMP4
@testable import Local
import Publishing
import Support
import Testing

/// No machine has the microphones of these tests.
@Suite("A microphone that is away")
struct MicrophoneCaptureTests {
  @Test func `Silence without a gap is published and the reason is told`() async throws {
    let clock = SteadyClock.system()
    let gate = LimitedGate()
    let log = LogCollector()
    let publication = LocalPublication(
      name: try #require(StreamName("mic")), kind: .capture, gate: gate, logger: log.logger)
    let mux = CaptureMux(publication, reading: clock.reading, wantsVideo: false, wantsAudio: true)
    let figures = CaptureFigures(CaptureStatus(audio: CaptureStatus.Audio(device: "weir-none")))
    let requested = RequestedSetting(MicrophoneSettings(device: "weir-none"))
    let capture = MicrophoneCapture(
      requested, mux: mux, clock: clock, publication: publication, figures: figures)
    let reason = await publication.run {
      let outcome = FirstError()
      async let running: Void = DedicatedThread.run(named: "microphone") { outcome.keep { try capture.run() } }
      for _ in 0..<1000 where gate.samples.count < 12 { try await Task.sleep(for: .milliseconds(10)) }
      publication.stop(.finished)
      try await running
      try outcome.get()
    }
    #expect(reason == .finished && gate.samples.count >= 12)
    let times = gate.samples.map(\.decodeTime)
    #expect(times.first == 0 && zip(times, times.dropFirst()).allSatisfy { $1 - $0 == 1024 })
    #expect(gate.tracks.map { $0.map(\.timescale) } == [[48_000]])
    let status = try #require(figures.status.audio)
    #expect(status.device == "weir-none")
    guard case .away(let why) = status.state else {
      Issue.record("it is \(status.state)")
      return
    }
    #expect(why.contains("the microphone weir-none") || why.contains("no microphone weir-none"))
    #expect(log.lines.filter { $0.hasPrefix("warning") }.count == 1, "told once")
  }
}

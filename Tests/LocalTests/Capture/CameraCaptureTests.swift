import Base
import CLibAV
@testable import FMP4
import LibAV
@testable import Local
import Publishing
import Support
import Synchronization
import Testing

/// No machine has the cameras of these tests.
@Suite("A camera that is away")
struct CameraCaptureTests {
  private struct Setup {
    let clock = SteadyClock.system()
    let gate = LimitedGate()
    let log = LogCollector()
    let queue: FrameQueue
    let publication: LocalPublication
    let requested: RequestedSetting<CameraSettings>
    let figures = CaptureFigures(CaptureStatus(video: CaptureStatus.Video(device: "/dev/weir-none")))
    let capture: CameraCapture

    init(_ settings: CameraSettings) throws {
      queue = FrameQueue(clock: clock)
      publication = LocalPublication(
        name: try #require(StreamName("cam")), kind: .capture, gate: gate, logger: log.logger)
      requested = RequestedSetting(settings)
      let mux = CaptureMux(publication, reading: clock.reading, wantsVideo: true, wantsAudio: false)
      capture = CameraCapture(
        requested, queue: queue, mux: mux, clock: clock, publication: publication, figures: figures)
    }

    /// Runs it until `isEnough` of the frames that it gave.
    func run(until isEnough: @escaping @Sendable ([QueuedFrame]) -> Bool) async throws -> [QueuedFrame] {
      let outcome = FirstError()
      let taken = Mutex<[QueuedFrame]>([])
      let turn = queue.takeOver()
      async let running: Void = DedicatedThread.run(named: "camera") { outcome.keep { try capture.run() } }
      try await DedicatedThread.run(named: "taker") {
        while let item = queue.pop(turn) {
          guard case .frame(let frame) = item else { continue }
          let frames = taken.withLock { frames in
            frames.append(frame)
            return frames
          }
          if isEnough(frames) { break }
        }
        publication.stop(.finished)
      }
      try await running
      try outcome.get()
      return taken.withLock { $0 }
    }
  }

  @Test func `A slate of the wanted size is shown at the wanted pace`() async throws {
    let setup = try Setup(
      CameraSettings(
        device: "/dev/weir-none", size: CameraSettings.Size(width: 65, height: 37),
        frameRate: FrameRate(numerator: 50, denominator: 1), rotation: .clockwise90))
    let frames = try await setup.run { $0.count >= 10 }
    // Sides are even, and turning is left to the track.
    #expect(frames.allSatisfy { $0.image.frame.pointee.width == 64 && $0.image.frame.pointee.height == 36 })
    #expect(frames.allSatisfy { $0.rotation == .clockwise90 && $0.rate.framesPerSecond == 50 })
    let steps = zip(frames, frames.dropFirst()).map { $1.time &- $0.time }
    #expect(steps.allSatisfy { $0 > 0 && $0 % 20_000_000 == 0 || $0 > 80_000_000 }, "\(steps)")
    let status = try #require(setup.figures.status.video)
    #expect(status.state == .away(CaptureError(.camera("/dev/weir-none"), .missing).description))
    #expect(status.taken == 0 && status.keyFrames == .encoder)
    #expect(setup.log.lines.first?.hasPrefix("warning: there is no camera /dev/weir-none") == true)
    let counts = "notice: 0 frames captured; lost: 0 dropped by the driver, 0 broken, "
    #expect(setup.log.lines.last?.hasPrefix(counts) == true)
  }

  @Test func `Pixels that are turned make a slate that is turned`() async throws {
    let setup = try Setup(
      CameraSettings(
        device: "/dev/weir-none", size: CameraSettings.Size(width: 64, height: 36), rotation: .clockwise270,
        turning: .pixels))
    let frames = try await setup.run { !$0.isEmpty }
    #expect(frames.first?.image.frame.pointee.width == 36 && frames.first?.image.frame.pointee.height == 64)
    #expect(frames.first?.rotation == Rotation.none)
  }

  @Test func `It goes over to another camera in the middle, and the slate keeps its size`() async throws {
    let setup = try Setup(CameraSettings(device: "/dev/weir-none", size: CameraSettings.Size(width: 64, height: 36)))
    let frames = try await setup.run { frames in
      if frames.count == 3 { setup.requested.change(to: CameraSettings(device: "/dev/weir-other")) }
      return setup.figures.status.video?.device == "/dev/weir-other" && frames.count > 6
    }
    #expect(frames.allSatisfy { $0.image.frame.pointee.width == 64 })
    #expect(zip(frames, frames.dropFirst()).allSatisfy { $0.time < $1.time })
  }
}

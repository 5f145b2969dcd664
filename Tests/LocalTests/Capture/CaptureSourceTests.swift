import Base
import FMP4
@testable import Local
import Publishing
import Support
import Testing

@Suite("A camera and a microphone as a publisher")
struct CaptureSourceTests {
  private func source(_ settings: CaptureSettings, _ gate: LimitedGate = LimitedGate()) throws -> CaptureSource {
    CaptureSource(
      name: try #require(StreamName("cam")), settings: settings, gate: gate, clock: .system(), logger: .silent)
  }

  private let camera = CameraSettings(device: "/dev/weir-none", format: .yuyv)
  private let microphone = MicrophoneSettings(device: "weir-none", bitRate: 96_000)

  @Test func `Its status and settings are those of its devices`() throws {
    let both = try source(CaptureSettings(camera: camera, microphone: microphone))
    #expect(both.settings == CaptureSettings(camera: camera, microphone: microphone))
    #expect(both.status?.video?.device == "/dev/weir-none" && both.status?.audio?.device == "weir-none")
    #expect(both.status?.video?.state == .starting)
    let silent = try source(CaptureSettings(camera: camera))
    #expect(silent.status?.audio == nil && silent.settings?.microphone == nil)
  }

  @Test func `What it does not have cannot be changed`() throws {
    let listening = try source(CaptureSettings(microphone: microphone))
    #expect(listening.change(.camera(camera)) == .hasNoCamera)
    #expect(listening.change(.controls([])) == .hasNoCamera)
    #expect(listening.change(.keyFrame) == .hasNoCamera)
    #expect(try source(CaptureSettings(camera: camera)).change(.microphone(microphone)) == .hasNoMicrophone)
  }

  @Test func `Another device is taken, another codec of the audio is not`() throws {
    let capture = try source(CaptureSettings(camera: camera, microphone: microphone))
    var other = microphone
    other.device = "hw:1"
    #expect(capture.change(.microphone(other)) == nil && capture.settings?.microphone?.device == "hw:1")
    other.coding = .opus
    #expect(capture.change(.microphone(other)) == .isFixed(option: "codec=opus"))
    other = microphone
    other.bitRate = 64_000
    #expect(capture.change(.microphone(other)) == .isFixed(option: "bitrate=64000"))
    #expect(capture.settings?.microphone?.bitRate == 96_000)
    var second = camera
    second.device = "/dev/video1"
    #expect(capture.change(.camera(second)) == nil && capture.settings?.camera == second)
  }

  @Test func `After its end nothing is changed any more`() throws {
    let capture = try source(CaptureSettings(camera: camera))
    capture.stop(.finished)
    #expect(capture.change(.camera(camera)) == .hasEnded && capture.change(.keyFrame) == .hasEnded)
  }

  @Test func `One that is stopped before it begins opens nothing and ends`() async throws {
    let gate = LimitedGate()
    let capture = try source(CaptureSettings(camera: camera, microphone: microphone), gate)
    capture.stop(.shutdown)
    #expect(await capture.run() == .shutdown)
    #expect(gate.ending == .shutdown && gate.events.count == 1)
    #expect(gate.request?.protocolName == "capture")
  }

  /// A camera that codes by itself makes key frames when it likes.
  @Test(arguments: [(.yuyv, 2000), (.mjpeg, 2000), (.h264, nil), (nil, nil)] as [(CameraFormat?, Int64?)])
  func `Key frames are promised where its own encoder makes them for sure`(
    _ format: CameraFormat?, _ milliseconds: Int64?
  ) async throws {
    let gate = LimitedGate(refusal: .shuttingDown)
    _ = try await source(CaptureSettings(camera: CameraSettings(device: "/dev/weir-none", format: format)), gate).run()
    let promised: PublishRequest.KeyFrames? = milliseconds.map { .every(MediaTime(milliseconds: $0)) }
    #expect(try #require(gate.request).keyFrames == promised ?? .asItsEncoderHasThem)
  }
}

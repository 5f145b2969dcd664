import LibAV
@testable import Local
import Testing

@Suite("Controls of a camera")
struct CameraControlsTests {
  @Test(arguments: [
    ("Brightness", "brightness"), ("Exposure, Auto", "exposure_auto"),
    ("White Balance Temperature", "white_balance_temperature"),
    ("Focus (absolute)", "focus_absolute"), ("  LED1 Mode ", "led1_mode"), ("Gr\u{F6}\u{DF}e", "gr_e"), ("---", ""),
    ("", ""),
  ])
  func `Names are lower case, with underscores between their words`(_ title: String, _ name: String) {
    #expect(CameraHandle.optionName(title) == name)
  }

  @Test func `A value that is refused is told with the control's range`() {
    let control = CameraControl(
      name: "gain", minimum: -4, maximum: 100, step: 1, standard: 0, value: 7, identifier: 0x0098_0913)
    #expect(CaptureRefusal.outOfRange(control, 101).description == "gain=101 is outside -4 to 100.")
  }

  @Test func `What is no camera is not opened`() {
    #expect(throws: CaptureError(.camera("/dev/weir-none"), .missing)) { try CameraHandle("/dev/weir-none") }
    #expect(throws: CaptureError.self) { try CameraHandle("/dev/null") }
    #expect(throws: CaptureError.self) { try CameraHandle("/tmp") }
  }

  @Test func `Only video devices are listed as cameras`() {
    let paths = VideoDevices.paths()
    let listed = CameraCatalogue.list()
    #expect(listed.allSatisfy { paths.contains($0.path) })
    #expect(listed.allSatisfy { $0.problem == nil || $0.modes.isEmpty && $0.name.isEmpty })
  }

  @Test func `A camera that is nowhere stays where it was`() {
    let location = CameraLocation(name: "no such camera", bus: "usb-none")
    #expect(location.path(known: "/dev/weir-none") == "/dev/weir-none")
  }
}

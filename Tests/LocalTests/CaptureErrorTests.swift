import Glibc
import LibAV
@testable import Local
import Testing

@Suite("Why a device cannot be used")
struct CaptureErrorTests {
  @Test(
    arguments: [
      (ENOENT, .missing), (ENXIO, .missing), (EACCES, .forbidden), (EPERM, .forbidden), (EBUSY, .busy), (ENODEV, .lost),
      (EIO, .lost),
    ] as [(Int32, CaptureError.Reason)])
  func `The system's codes have their meaning`(_ code: Int32, _ reason: CaptureError.Reason) {
    #expect(CaptureError(.camera("/dev/video0"), code: code, "open it").reason == reason)
    #expect(CaptureError(.microphone("hw:0"), code: code, "open it").reason == reason)
  }

  @Test func `Other codes are told in the system's words, with what was attempted`() {
    let error = CaptureError(.camera("/dev/video0"), code: EINVAL, "set its format")
    #expect(error.reason == .unusable("cannot set its format: Invalid argument"))
  }

  @Test func `Every text is one line that names the device and what to do`() {
    let reasons: [CaptureError.Reason] = [.missing, .forbidden, .busy, .lost, .silent, .unusable("it is a toaster")]
    for device in [CaptureError.Device.camera("/dev/video7"), .microphone("/dev/video7")] {
      let texts = reasons.map { CaptureError(device, $0).description }
      #expect(Set(texts).count == reasons.count)
      #expect(texts.allSatisfy { $0.contains("/dev/video7") && !$0.contains("\n") })
      #expect(texts.allSatisfy { $0.contains(";") }, "what is wrong; what to do")
      #expect(texts.last?.contains("it is a toaster") == true)
    }
    #expect(CaptureError(.camera("x"), .forbidden).description.contains("group video"))
    #expect(CaptureError(.microphone("x"), .forbidden).description.contains("group audio"))
  }

  @Test func `What the codec library refuses is the device's fault`() throws {
    #expect(try CaptureError.blaming(.camera("x")) { () throws(LibAVError) in 7 } == 7)
    let library = LibAVError("scale", code: -EINVAL)
    #expect(throws: CaptureError(.camera("x"), .unusable(library.description))) {
      try CaptureError.blaming(.camera("x")) { () throws(LibAVError) in throw library }
    }
  }
}

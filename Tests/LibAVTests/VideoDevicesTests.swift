@testable import LibAV
import Testing

@Suite("The video devices of this machine")
struct VideoDevicesTests {
  @Test func `Devices are listed in the order of their numbers`() {
    let paths = VideoDevices.paths()
    let numbers = paths.map { Int($0.dropFirst("/dev/video".count)) ?? -1 }
    #expect(paths.allSatisfy { $0.hasPrefix("/dev/video") } && numbers.allSatisfy { $0 >= 0 })
    #expect(numbers == numbers.sorted() && Set(numbers).count == numbers.count)
  }

  @Test func `Text in a field ends with a zero or with the field`() {
    var short: (UInt8, UInt8, UInt8, UInt8) = (0x55, 0x56, 0, 0x58)
    #expect(VideoDevices.text(&short) == "UV")
    var full: (UInt8, UInt8) = (0x55, 0x56)
    #expect(VideoDevices.text(&full) == "UV")
    var empty: (UInt8, UInt8) = (0, 0x55)
    #expect(VideoDevices.text(&empty) == "")
    var broken: (UInt8, UInt8) = (0xFF, 0x41)
    #expect(VideoDevices.text(&broken) == "\u{FFFD}A")
  }

  @Test(.enabled(if: VideoDevices.paths().isEmpty))
  func `Without a device libavcodec is not let at them`() throws {
    let error = try #require(throws: CodecDevices.Unsuitable.self) { try CodecDevices.check() }
    #expect(error.description == "no video device of this machine is an encoder")
  }
}

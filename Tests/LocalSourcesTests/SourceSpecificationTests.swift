import Base
@testable import FMP4
@testable import LibAV
@testable import Local
import LocalSources
import NIOCore
import Testing

@Suite struct SourceSpecificationTests {
  private func capture(_ text: String) throws -> CaptureSettings {
    guard case .capture(let settings) = try SourceSpecification(parsing: text).kind else {
      throw ValueError("no capture", advice: text)
    }
    return settings
  }

  private func complaint(_ text: String) -> String {
    do throws(ValueError) {
      _ = try SourceSpecification(parsing: text)
      return "accepted"
    } catch {
      return "\(error.reason); \(error.advice)"
    }
  }

  @Test func theKindsAreToldApart() throws {
    #expect(try SourceSpecification(parsing: "demo=test").kind == .test())
    #expect(try SourceSpecification(parsing: "demo=test?rotate=mirrored-90").kind == .test(rotation: .mirrored90))
    #expect(try SourceSpecification(parsing: "loop=file:a,b=c?.mp4").kind == .file(path: "a,b=c?.mp4"))
    #expect(try capture("mic=alsa:hw:0").microphone == MicrophoneSettings(device: "hw:0"))
    #expect(try capture("mic=alsa:hw:0").camera == nil)
    let both = try capture("cam=v4l2:/dev/video0,alsa:default")
    #expect(both.camera == CameraSettings(device: "/dev/video0") && both.microphone?.device == "default")
  }

  @Test func aTransportStreamHasAnAddressAndOptions() throws {
    func place(_ text: String) throws -> DatagramPlace {
      guard case .datagrams(let place) = try SourceSpecification(parsing: "field=udp://\(text)").kind else {
        throw ValueError("no transport stream", advice: text)
      }
      return place
    }
    let group = try SocketAddress(ipAddress: "239.1.1.1", port: 5000)
    #expect(try place("239.1.1.1:5000") == DatagramPlace(address: group))
    #expect(
      try place("@239.1.1.1:5000?interface=eth0&program=2&from=192.0.2.7")
        == DatagramPlace(
          address: group, interface: "eth0", sender: try SocketAddress(ipAddress: "192.0.2.7", port: 0), program: 2))
    #expect(try place(":5000").address == SocketAddress(ipAddress: "0.0.0.0", port: 5000))
    #expect(try place("[ff15::1]:5000").address == SocketAddress(ipAddress: "ff15::1", port: 5000))
    for wrong in ["", ":0", "host:5000", ":1?x=1", ":1?program=0", ":1?from=me", ":1?interface", ":1?interface="] {
      #expect(complaint("field=udp://\(wrong)") != "accepted", "\(wrong)")
    }
    #expect(
      SourceSpecification.list("a=udp://:5000,b=udp://:5001?from=::1") == ["a=udp://:5000", "b=udp://:5001?from=::1"])
  }

  @Test func namesOfMicrophonesMayHoldCommasAndEqualsSigns() throws {
    let settings = try capture("cam=alsa:plughw:CARD=U0x46d,DEV=0?rate=44100&channels=1,v4l2:/dev/video2")
    #expect(settings.microphone == MicrophoneSettings(device: "plughw:CARD=U0x46d,DEV=0", rate: 44100, channels: 1))
    #expect(settings.camera?.device == "/dev/video2")
  }

  @Test func aCameraHasOptions() throws {
    let text =
      "c=v4l2:/dev/video0?size=1280x720&fps=29.97&format=mjpeg&rotate=90&rotate-by=pixels&bitrate=2.5M"
      + "&preset=fast&tune=film&profile=main&gop=1s&bframes=2&encoder=libx264&control.brightness=-3"
    let camera = try #require(try capture(text).camera)
    #expect(camera.size == CameraSettings.Size(width: 1280, height: 720) && camera.format == .mjpeg)
    #expect(camera.frameRate == FrameRate(numerator: 30000, denominator: 1001) && camera.rotation == .clockwise90)
    #expect(camera.turning == .pixels)
    #expect(
      camera.encoding
        == VideoEncoding(
          encoder: .x264, bitRate: 2_500_000, preset: .fast, tune: .film, profile: .main,
          keyFrameMilliseconds: 1000, bFrames: 2))
    #expect(camera.controls == [CameraSettings.Control(name: "brightness", value: -3)])
  }

  private func encoding(_ options: String, encoder: VideoEncoderName? = nil) throws -> VideoEncoding {
    let text = "c=v4l2:/dev/video0?\(options)"
    guard case .capture(let settings) = try SourceSpecification(parsing: text, encoder: encoder).kind else {
      throw ValueError("no capture", advice: text)
    }
    return try #require(settings.camera).encoding
  }

  @Test func anEncoderNamesItsCodecAndTheServersEncoderIsTakenWhereItFits() throws {
    #expect(try encoding("encoder=libx265").coding == .hevc)
    #expect(
      try encoding("codec=av1&rc=crf:30&threads=2")
        == VideoEncoding(coding: .av1, rateControl: .quality(30), threads: 2))
    #expect(try encoding("gop=2s", encoder: .x265) == VideoEncoding(encoder: .x265))
    #expect(try encoding("codec=h264", encoder: .x265) == VideoEncoding())
    #expect(try encoding("codec=hevc", encoder: .x265) == VideoEncoding(encoder: .x265))
    #expect(try encoding("encoder=auto", encoder: .x265) == VideoEncoding())
    #expect(try encoding("rc=vbr").rateControl == .variable)
  }

  @Test func whatIsNotNamedOfALiveCameraStaysAsItIs() throws {
    let set = try #require(
      try capture("c=v4l2:/dev/video0?size=640x360&rotate=90&codec=hevc&preset=fast&gop=1s&control.gain=3").camera)
    func changed(_ text: String) throws -> CameraSettings {
      try DeviceOptions(text, device: "a camera", example: "v4l2:/dev/video0").camera(insteadOf: set)
    }
    var expected = set
    expected.controls = []
    expected.encoding.bitRate = 1_000_000
    #expect(try changed("/dev/video0?bitrate=1M") == expected)
    #expect(try changed("/dev/video0?encoder=auto").encoding.coding == .hevc)
    #expect(try changed("/dev/video2") == CameraSettings(device: "/dev/video2", encoding: set.encoding))
    do throws(ValueError) {
      _ = try DeviceOptions("/dev/video0?tune=film", device: "a camera", example: "").camera(insteadOf: set)
      Issue.record("film is no tune of HEVC")
    } catch {
      #expect(error.reason == "the tune film belongs to H.264")
      #expect(error.advice == "name the other one as well; it keeps its value otherwise")
    }
    let microphone = MicrophoneSettings(device: "hw:1", rate: 44100, bitRate: 64_000, coding: .opus)
    func heard(_ text: String) throws -> MicrophoneSettings {
      try DeviceOptions(text, device: "a microphone", example: "alsa:default").microphone(insteadOf: microphone)
    }
    #expect(try heard("hw:1?channels=18").channels == 18)
    #expect(try heard("hw:1?channels=18").rate == 44100)
    #expect(try heard("hw:2") == MicrophoneSettings(device: "hw:2", bitRate: 64_000, coding: .opus))
  }

  @Test func contradictionsOfAnEncoderAreToldAtOnce() {
    #expect(
      complaint("c=v4l2:/dev/video0?codec=hevc&encoder=libx264")
        == "libx264 codes h264, not hevc; leave one of the two out")
    #expect(
      complaint("c=v4l2:/dev/video0?codec=av1&profile=high")
        == "the profile high belongs to H.264; av1 has main; leave one of the two out")
    #expect(
      complaint("c=v4l2:/dev/video0?profile=baseline&bframes=1").hasPrefix("the profile baseline has no B-frames"))
    #expect(
      complaint("c=v4l2:/dev/video0?encoder=x264").hasPrefix("encoder=x264 is unknown; use auto or one of h264_nvenc"))
    #expect(
      complaint("c=v4l2:/dev/video0?rc=abr")
        == "rc=abr is not a rate control; write rc=cbr, rc=vbr or rc=crf:23, from 0 to 51")
  }

  @Test func ratesAreReadExactly() throws {
    let rates: [(String, UInt32, UInt32)] = [
      ("30", 30, 1), ("25", 25, 1), ("12.5", 25, 2), ("23.976", 24000, 1001), ("59.94", 60000, 1001),
      ("30000/1001", 30000, 1001), ("7.5", 15, 2),
    ]
    for (text, numerator, denominator) in rates {
      let rate = try capture("c=v4l2:/dev/video0?fps=\(text)").camera?.frameRate
      #expect(rate == FrameRate(numerator: numerator, denominator: denominator), "\(text)")
    }
  }

  @Test func whatIsWrongIsSaidWithWhatToWrite() {
    let advice =
      "write NAME=test, NAME=file:PATH, NAME=v4l2:DEVICE, NAME=alsa:DEVICE, NAME=v4l2:DEVICE,alsa:DEVICE, "
      + "NAME=udp://ADDRESS:PORT or NAME=srt://HOST:PORT"
    #expect(complaint("cam") == "a source needs a name and a kind; \(advice)")
    #expect(complaint("cam=tset") == "the kind of source \"tset\" is unknown; \(advice)")
    #expect(complaint("cam=file:") == "no file is named; write NAME=file:PATH")
    #expect(complaint("a/b=test").hasPrefix("\"a/b\" cannot name a stream"))
    #expect(
      complaint("cam=v4l2:") == "the device of a camera is missing; write v4l2:/dev/video0; weir devices lists them")
    #expect(
      complaint("cam=v4l2:/dev/video0,v4l2:/dev/video1")
        == "two cameras in one source; give each camera a source of its own")
    #expect(
      complaint("cam=v4l2:/dev/video0?size=720p")
        == "size=720p is not a size; write size=1280x720, sides from 16 to 8192")
    #expect(complaint("cam=v4l2:/dev/video0?size=15x720").hasPrefix("size=15x720 is not a size"))
    #expect(
      complaint("cam=v4l2:/dev/video0?fps=0")
        == "fps=0 is not a frame rate; write fps=30, fps=29.97 or fps=30000/1001, from 1 to 300")
    #expect(
      complaint("cam=v4l2:/dev/video0?format=rgb")
        == "format=rgb is unknown; use one of yuyv, nv12, yu12, mjpeg, h264")
    #expect(complaint("cam=v4l2:/dev/video0?colour=1").hasPrefix("a camera has no option \"colour\"; use size, fps"))
    #expect(complaint("cam=v4l2:/dev/video0?fps").hasPrefix("the option \"fps\" has no value"))
    #expect(complaint("cam=v4l2:/dev/video0?fps=1&fps=2") == "the option \"fps\" is given twice; give it once")
    #expect(
      complaint("m=alsa:default?size=1x1")
        == "a microphone has no option \"size\"; use rate, channels, bitrate or codec")
  }

  @Test func aVariableHoldsSeveral() {
    #expect(SourceSpecification.list("a=test,b=test") == ["a=test", "b=test"])
    #expect(
      SourceSpecification.list("a=v4l2:/dev/video0,alsa:hw:CARD=X,DEV=0,b=file:c.mp4")
        == ["a=v4l2:/dev/video0,alsa:hw:CARD=X,DEV=0", "b=file:c.mp4"])
    #expect(SourceSpecification.list("a=test,,b") == ["a=test,b"])
  }
}

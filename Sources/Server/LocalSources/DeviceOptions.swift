package import Base
package import LibAV
package import Local
internal import Transcode

/// A capture device with its options: `/dev/video0?size=1280x720&fps=30`.
package struct DeviceOptions {
  private let device: String
  private let options: [(name: String, value: String)]

  /// - Parameters:
  ///   - kind: "a camera", for messages.
  ///   - example: an example of a device, for messages.
  package init(_ text: String, device kind: String, example: String) throws(ValueError) {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    device = String(parts.first ?? "")
    guard !device.isEmpty, !device.utf8.contains(0) else {
      throw ValueError("the device of \(kind) is missing", advice: "write \(example); weir devices lists them")
    }
    var options: [(name: String, value: String)] = []
    for option in parts.dropFirst().flatMap({ $0.split(separator: "&") }) {
      guard let equals = option.firstIndex(of: "=") else {
        throw ValueError("the option \"\(option)\" has no value", advice: "write \(example)?OPTION=VALUE&OPTION=VALUE")
      }
      let name = String(option[..<equals])
      guard !options.contains(where: { $0.name == name }) else {
        throw ValueError("the option \"\(name)\" is given twice", advice: "give it once")
      }
      options.append((name, String(option[option.index(after: equals)...])))
    }
    self.options = options
  }

  /// - Parameter encoder: the encoder if the options name none; nil for the best of this machine.
  package func camera(encoder: VideoEncoderName? = nil) throws(ValueError) -> CameraSettings {
    try camera(CameraSettings(device: device), EncodingOptions(encoder: encoder))
  }

  /// New settings for a live camera. Settings that are not named stay; those of the encoding stay even for another camera.
  ///
  /// - Parameter present: the present settings.
  package func camera(insteadOf present: CameraSettings) throws(ValueError) -> CameraSettings {
    var settings = present.device == device ? present : CameraSettings(device: device)
    // Controls were applied when the camera was opened, and may have changed since.
    settings.controls = []
    return try camera(settings, EncodingOptions(changing: present.encoding))
  }

  private func camera(
    _ base: CameraSettings, _ baseEncoding: EncodingOptions
  ) throws(ValueError) -> CameraSettings {
    var (settings, encoding) = (base, baseEncoding)
    for (name, value) in options {
      switch name {
      case "size": settings.size = try OptionValues.size(value)
      case "fps": settings.frameRate = try OptionValues.frameRate(value)
      case "format": settings.format = .some(try OptionValues.word(name, value))
      case "rotate": settings.rotation = try OptionValues.rotation(value)
      case "rotate-by": settings.turning = try OptionValues.word(name, value)
      default:
        if try encoding.take(name, value) { continue }
        guard let control = name.rest(after: "control."), !control.isEmpty else {
          let names = ["size", "fps", "format", "rotate", "rotate-by"] + EncodingOptions.names + ["control.NAME"]
          throw ValueError("a camera has no option \"\(name)\"", advice: "use \(names.joined(separator: ", "))")
        }
        settings.controls.append(try Self.control(control, value))
      }
    }
    guard settings.format?.isCoded != true || settings.turning == .matrix else {
      throw ValueError(
        "video encoded by the camera (format=h264) cannot be turned by pixels", advice: "leave rotate-by out")
    }
    settings.encoding = try encoding.checked()
    return settings
  }

  package func microphone() throws(ValueError) -> MicrophoneSettings {
    try microphone(MicrophoneSettings(device: device))
  }

  /// New settings for a live microphone. Settings that are not named stay.
  package func microphone(insteadOf present: MicrophoneSettings) throws(ValueError) -> MicrophoneSettings {
    try microphone(
      present.device == device
        ? present : MicrophoneSettings(device: device, bitRate: present.bitRate, coding: present.coding))
  }

  private func microphone(_ base: MicrophoneSettings) throws(ValueError) -> MicrophoneSettings {
    var settings = base
    for (name, value) in options {
      switch name {
      case "rate": settings.rate = try OptionValues.number(name, value, 8000...192_000)
      case "channels": settings.channels = try OptionValues.number(name, value, 1...128)
      case "bitrate": settings.bitRate = try OptionValues.bitRate(value, 16_000...512_000)
      case "codec": settings.coding = try OptionValues.word(name, value, AudioSpecification.codings)
      default:
        throw ValueError("a microphone has no option \"\(name)\"", advice: "use rate, channels, bitrate or codec")
      }
    }
    return settings
  }

  /// A control by its name, as `weir devices` lists it, and a whole number.
  package static func control(_ name: String, _ text: String) throws(ValueError) -> CameraSettings.Control {
    guard let value = Int32(text) else {
      throw ValueError("the control \(name) is not set to a whole number", advice: "weir devices lists its range")
    }
    return CameraSettings.Control(name: name, value: value)
  }
}

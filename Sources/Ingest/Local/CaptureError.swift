internal import Glibc
internal import LibAV

/// Why a camera or a microphone cannot be used. The text is one line and says what to do.
package struct CaptureError: Error, Sendable, Hashable, CustomStringConvertible {
  package enum Reason: Sendable, Hashable {
    case missing
    case forbidden
    case busy
    /// It was present and has gone.
    case lost
    /// It is present and sends nothing.
    case silent
    /// With the system's reason.
    case unusable(String)
  }

  package enum Device: Sendable, Hashable {
    case camera(String)
    case microphone(String)
  }

  package let device: Device
  package let reason: Reason

  init(_ device: Device, _ reason: Reason) {
    self.device = device
    self.reason = reason
  }

  /// - Parameters:
  ///   - code: errno, positive.
  ///   - attempt: "set its format", for codes that need an explanation.
  init(_ device: Device, code: Int32, _ attempt: String) {
    let reason: Reason =
      switch code {
      case ENOENT, ENXIO: .missing
      case EACCES, EPERM: .forbidden
      case EBUSY: .busy
      case ENODEV, EIO: .lost
      default: .unusable("cannot \(attempt): \(String(cString: strerror(code)))")
      }
    self.init(device, reason)
  }

  /// Processes a device's data. An error of libav* is not a failure of the capture: the device counts as unusable, is
  /// bridged, and tried again.
  static func blaming<Value>(_ device: Device, _ work: () throws(LibAVError) -> Value) throws(CaptureError) -> Value {
    do throws(LibAVError) {
      return try work()
    } catch {
      throw CaptureError(device, .unusable(error.description))
    }
  }

  package var description: String {
    switch (device, reason) {
    case (.camera(let name), .missing):
      "there is no camera \(name); plug it in, or choose one that weir devices lists"
    case (.camera(let name), .forbidden):
      "weir may not use the camera \(name); add its user to the group video: usermod -aG video USER"
    case (.camera(let name), .busy):
      "the camera \(name) is in use by another program; end that one: fuser -v \(name) names it"
    case (.camera(let name), .lost):
      "device lost: the camera \(name) has gone; plug it in again, weir continues as soon as it is back"
    case (.camera(let name), .silent):
      "the camera \(name) is present, but sends nothing; plug it in again, or check the program that feeds it"
    case (.camera(let name), .unusable(let why)):
      "the camera \(name) cannot be used: \(why); weir devices lists what it offers"
    case (.microphone(let name), .missing):
      "there is no microphone \(name); plug it in, or choose one that weir devices lists"
    case (.microphone(let name), .forbidden):
      "weir may not use the microphone \(name); add its user to the group audio: usermod -aG audio USER"
    case (.microphone(let name), .busy):
      "the microphone \(name) is in use by another program; end that one: fuser -v /dev/snd/* names it"
    case (.microphone(let name), .lost):
      "device lost: the microphone \(name) has gone; plug it in again, weir continues as soon as it is back"
    case (.microphone(let name), .silent):
      "the microphone \(name) is present, but sends nothing; plug it in again"
    case (.microphone(let name), .unusable(let why)):
      "the microphone \(name) cannot be used: \(why); weir devices lists the microphones"
    }
  }
}

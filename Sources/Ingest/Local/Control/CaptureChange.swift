/// Changes to a running capture.
package enum CaptureChange: Sendable {
  /// Another camera, or other settings of the same one. Size and rate of the stream stay unless given.
  case camera(CameraSettings)
  case microphone(MicrophoneSettings)
  case controls([CameraSettings.Control])
  /// One of the next frames becomes a key frame.
  case keyFrame
}

/// Why a capture refuses a change. The text is one line and says what to do.
package enum CaptureRefusal: Error, Sendable, Hashable, CustomStringConvertible {
  /// The stream is not from a camera or microphone.
  case isNoCapture
  case hasNoCamera
  case hasNoMicrophone
  /// The requested name, and the existing ones.
  case unknownControl(String, [String])
  case outOfRange(CameraControl, Int32)
  /// The requested option, which is fixed while the stream lasts.
  case isFixed(option: String)
  /// The camera encodes its video itself, so encoder options have no effect.
  case codesByItself(device: String)
  /// The camera encodes its video itself and makes no key frames on request.
  case hasNoKeyFrames(device: String)
  /// The capture has ended.
  case hasEnded

  package var description: String {
    switch self {
    case .isNoCapture: "This stream does not come from a camera or microphone of this server."
    case .hasNoCamera: "This capture has no camera; start the source with v4l2:DEVICE."
    case .hasNoMicrophone: "This capture has no microphone; start the source with alsa:DEVICE."
    case .unknownControl(let name, let known):
      known.isEmpty
        ? "The camera is away, or it has no controls; \(name) cannot be set."
        : "The camera has no control \(name), only \(known.joined(separator: ", "))."
    case .outOfRange(let control, let value):
      "\(control.name)=\(value) is outside \(control.minimum) to \(control.maximum)."
    case .isFixed(let option):
      "The microphone's \(option) cannot be changed while the stream is live; start the source with it."
    case .codesByItself(let device):
      "The camera \(device) encodes its video itself; encoder options have no effect on it."
    case .hasNoKeyFrames(let device):
      "The camera \(device) encodes its video itself, and makes no key frames on request."
    case .hasEnded: "This source is not running; start it first."
    }
  }
}

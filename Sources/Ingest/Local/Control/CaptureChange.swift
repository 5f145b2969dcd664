/// What may be asked of a capture while it is live.
package enum CaptureChange: Sendable {
  /// Another camera, or the same one otherwise. Size and rate stay as they are in the stream unless given.
  case camera(CameraSettings)
  case microphone(MicrophoneSettings)
  case controls([CameraSettings.Control])
  /// One of the next pictures is to be a key frame.
  case keyFrame
}

/// Why a capture does not do it. The text is one line that says what to do.
package enum CaptureRefusal: Error, Sendable, Hashable, CustomStringConvertible {
  /// The stream is none of a camera or microphone.
  case isNoCapture
  case hasNoCamera
  case hasNoMicrophone
  /// The name, and those that there are.
  case unknownControl(String, [String])
  case outOfRange(CameraControl, Int32)
  /// An option that holds as long as the stream lasts, and what was asked for.
  case isFixed(option: String)
  /// The camera codes by itself: these options of an encoder have nobody to be told to.
  case codesByItself(device: String)
  /// The camera codes by itself, and makes key frames when it likes.
  case hasNoKeyFrames(device: String)
  /// The capture is over.
  case hasEnded

  package var description: String {
    switch self {
    case .isNoCapture: "This stream does not come from a camera or microphone of this server."
    case .hasNoCamera: "This capture has no camera; start the source with v4l2:DEVICE."
    case .hasNoMicrophone: "This capture has no microphone; start the source with alsa:DEVICE."
    case .unknownControl(let name, let known):
      known.isEmpty
        ? "The camera is not there, or has no controls, \(name) among them."
        : "The camera has no control \(name), only \(known.joined(separator: ", "))."
    case .outOfRange(let control, let value):
      "\(control.name)=\(value) is outside \(control.minimum) to \(control.maximum)."
    case .isFixed(let option):
      "The microphone's \(option) cannot be changed while the stream is live; start the source with it."
    case .codesByItself(let device):
      "The camera \(device) codes its pictures by itself, which options of an encoder do not change."
    case .hasNoKeyFrames(let device):
      "The camera \(device) codes its pictures by itself, and cannot be asked for a key frame."
    case .hasEnded: "This source is not running; start it first."
    }
  }
}

/// The devices of one capture: a camera, a microphone, or both.
package struct CaptureSettings: Sendable, Hashable {
  package var camera: CameraSettings?
  package var microphone: MicrophoneSettings?

  package init(camera: CameraSettings? = nil, microphone: MicrophoneSettings? = nil) {
    self.camera = camera
    self.microphone = microphone
  }
}

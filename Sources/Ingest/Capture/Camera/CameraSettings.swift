package import FMP4

/// How pictures leave a camera.
package enum CameraFormat: String, Sendable, Hashable, CaseIterable {
  case yuyv
  case nv12
  case yu12
  case mjpeg
  /// Coded by the camera, and passed on as it is.
  case h264
}

/// Which camera, and what is wanted of it; what is nil is chosen from what the camera offers.
package struct CameraSettings: Sendable, Hashable {
  /// Pixels.
  package struct Size: Sendable, Hashable {
    package var width: Int
    package var height: Int

    package init(width: Int, height: Int) {
      self.width = width
      self.height = height
    }
  }

  /// The device's path: `/dev/video0`.
  package var device: String
  package var size: Size?
  package var frameRate: FrameRate?
  package var format: CameraFormat?
  /// The picture's turn, which players apply.
  package var rotation: Rotation
  /// Values of the camera's controls, by name as `weir devices` lists them, in the order in which they are set.
  package var controls: [Control]
  package var encoding: VideoEncoding

  /// A control and the value that it is to have.
  package struct Control: Sendable, Hashable {
    package var name: String
    package var value: Int32

    package init(name: String, value: Int32) {
      self.name = name
      self.value = value
    }
  }

  package init(
    device: String, size: Size? = nil, frameRate: FrameRate? = nil, format: CameraFormat? = nil,
    rotation: Rotation = .none, controls: [Control] = [], encoding: VideoEncoding = VideoEncoding()
  ) {
    self.device = device
    self.size = size
    self.frameRate = frameRate
    self.format = format
    self.rotation = rotation
    self.controls = controls
    self.encoding = encoding
  }
}

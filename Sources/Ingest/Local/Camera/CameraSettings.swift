package import FMP4

/// How pictures leave a camera.
package enum CameraFormat: String, Sendable, Hashable, CaseIterable {
  case yuyv
  case nv12
  case yu12
  case mjpeg
  /// Coded by the camera, and passed on as it is.
  case h264

  package var isCoded: Bool { self == .h264 }
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
  /// The picture's turn.
  package var rotation: Rotation
  package var turning: Turning
  /// Values of the camera's controls, by name as `weir devices` lists them, in the order in which they are set.
  package var controls: [Control]
  package var encoding: VideoEncoding

  /// Who turns the picture.
  package enum Turning: String, Sendable, Hashable, CaseIterable {
    /// Players, by the track's matrix: it costs nothing, and does for pictures that the camera has coded, too.
    case matrix
    /// We, before the picture is coded: for players that know no matrix.
    case pixels
  }

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
    rotation: Rotation = .none, turning: Turning = .matrix, controls: [Control] = [],
    encoding: VideoEncoding = VideoEncoding()
  ) {
    self.device = device
    self.size = size
    self.frameRate = frameRate
    self.format = format
    self.rotation = rotation
    self.turning = turning
    self.controls = controls
    self.encoding = encoding
  }
}

extension CameraSettings {
  /// By how much the pixels are turned before they are coded.
  var pixelRotation: Rotation { turning == .pixels ? rotation : .none }

  /// What the track says of pictures that are coded here.
  var trackRotation: Rotation { turning == .matrix ? rotation : .none }
}

extension CameraSettings.Size {
  /// The size of such a picture once it is turned.
  func turned(by rotation: Rotation) -> CameraSettings.Size {
    switch rotation {
    case .none, .clockwise180: self
    case .clockwise90, .clockwise270: CameraSettings.Size(width: height, height: width)
    }
  }
}

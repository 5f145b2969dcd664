package import FMP4
package import LibAV

/// Format of a camera's frames.
package enum CameraFormat: String, Sendable, Hashable, CaseIterable {
  case yuyv
  case nv12
  case yu12
  case mjpeg
  /// Encoded by the camera, and passed on unchanged.
  case h264

  package var isCoded: Bool { self == .h264 }
}

/// A camera and its requested settings. Values that are nil are chosen from the camera's modes.
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

  /// Path of the device: `/dev/video0`.
  package var device: String
  package var size: Size?
  package var frameRate: FrameRate?
  package var format: CameraFormat?
  /// Rotation of the video.
  package var rotation: Rotation
  package var turning: Turning
  /// Values of the camera's controls, by their names in `weir devices`, in the order of setting.
  package var controls: [Control]
  package var encoding: VideoEncoding

  /// How the video is rotated.
  package enum Turning: String, Sendable, Hashable, CaseIterable {
    /// By players, using the track's matrix. It costs nothing and also works for video that the camera encodes.
    case matrix
    /// By weir before encoding, for players that ignore the matrix.
    case pixels
  }

  /// A control and its requested value.
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
  /// Rotation of the pixels before encoding.
  var pixelRotation: Rotation { turning == .pixels ? rotation : .none }

  /// Rotation in the track description of video that weir encodes.
  var trackRotation: Rotation { turning == .matrix ? rotation : .none }
}

extension CameraSettings.Size {
  /// The size after rotation.
  func turned(by rotation: Rotation) -> CameraSettings.Size {
    rotation.swapsSides ? CameraSettings.Size(width: height, height: width) : self
  }
}

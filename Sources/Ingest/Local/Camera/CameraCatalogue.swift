internal import LibAV

/// A camera in the list of `weir devices`.
package struct CameraListing: Sendable, Hashable {
  package var path: String
  package var name: String
  package var modes: [CameraMode]
  package var controls: [CameraControl]
  /// Why it cannot be used. Nil if it can.
  package var problem: CaptureError?
}

/// The cameras of this machine.
package enum CameraCatalogue {
  /// Queries each camera; takes milliseconds per camera. Leaves out devices that capture no video.
  package static func list() -> [CameraListing] {
    VideoDevices.paths().compactMap { path in
      do throws(CaptureError) {
        let handle = try CameraHandle(path)
        return CameraListing(
          path: path, name: handle.name, modes: handle.modes(), controls: handle.controls(), problem: nil)
      } catch {
        if case .unusable = error.reason { return nil }
        return CameraListing(path: path, name: "", modes: [], controls: [], problem: error)
      }
    }
  }
}

/// A camera as `weir devices` lists it.
package struct CameraListing: Sendable, Hashable {
  package var path: String
  package var name: String
  package var modes: [CameraMode]
  package var controls: [CameraControl]
  /// Why it cannot be used, where that is so.
  package var problem: CaptureError?
}

/// The cameras of this machine.
package enum CameraCatalogue {
  /// Asks every camera what it offers; takes milliseconds for each. Devices that take no pictures are left out.
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

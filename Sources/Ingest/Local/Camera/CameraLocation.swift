internal import LibAV

/// The place and name of a camera. A camera that is plugged in again there may have another number.
struct CameraLocation: Sendable, Hashable {
  let name: String
  let bus: String

  /// Its present path. The known path if it is still there, or if it is not found. Opens cameras, so it may take long.
  func path(known: String) -> String {
    if let handle = try? CameraHandle(known), handle.bus == bus { return known }
    let found = VideoDevices.paths().first { path in
      guard let handle = try? CameraHandle(path) else { return false }
      return handle.bus == bus && handle.name == name
    }
    return found ?? known
  }
}

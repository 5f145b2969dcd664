/// Where a camera was plugged in, and what it is called: a camera that comes back there may have another number.
struct CameraLocation: Sendable, Hashable {
  let name: String
  let bus: String

  /// The path at which it is now; the known one where it is still there, or nowhere. Opens cameras, which takes its time.
  func path(known: String) -> String {
    if let handle = try? CameraHandle(known), handle.bus == bus { return known }
    let found = VideoDevices.paths().first { path in
      guard let handle = try? CameraHandle(path) else { return false }
      return handle.bus == bus && handle.name == name
    }
    return found ?? known
  }
}

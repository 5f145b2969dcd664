internal import Local

/// Cameras and microphones, and whether this user may use them.
enum DeviceCheck {
  static func findings() -> [Finding] {
    let cameras = CameraCatalogue.list().map { finding("camera", $0.path, $0.name, $0.problem?.description) }
    let microphones = MicrophoneCatalogue.list().map {
      finding("microphone", $0.device, $0.name, $0.problem?.description)
    }
    return (cameras.isEmpty ? [.ok("camera", "", "there is none")] : cameras)
      + (microphones.isEmpty ? [.ok("microphone", "", "there is none")] : microphones)
  }

  private static func finding(_ check: String, _ device: String, _ name: String, _ problem: String?) -> Finding {
    problem.map { .split(.advice, check, "", $0) } ?? .ok(check, device, name.isEmpty ? "can be used" : name)
  }
}

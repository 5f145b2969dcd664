internal import Glibc

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
  /// The video devices of this machine, in the order of their numbers.
  static func paths() -> [String] {
    guard let folder = opendir("/dev") else { return [] }
    defer { closedir(folder) }
    var numbers: [Int] = []
    while let entry = readdir(folder) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if name.hasPrefix("video"), let number = Int(name.dropFirst(5)) { numbers.append(number) }
    }
    return numbers.sorted().map { "/dev/video\($0)" }
  }

  /// Asks every camera what it offers; takes milliseconds for each. Devices that take no pictures are left out.
  package static func list() -> [CameraListing] {
    paths().compactMap { path in
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

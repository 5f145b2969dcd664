internal import Glibc

/// The V4L2 video devices of this machine: cameras and codecs.
package enum VideoDevices {
  /// Device paths in the order of their numbers.
  package static func paths() -> [String] {
    guard let folder = opendir("/dev") else { return [] }
    defer { closedir(folder) }
    var numbers: [Int] = []
    while let entry = readdir(folder) {
      let name = text(&entry.pointee.d_name)
      if name.hasPrefix("video"), let number = Int(name.dropFirst(5)) { numbers.append(number) }
    }
    return numbers.sorted().map { "/dev/video\($0)" }
  }

  /// A C string in a field of fixed size.
  package static func text<Field: BitwiseCopyable>(_ field: inout Field) -> String {
    withUnsafeBytes(of: &field) { bytes in String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self) }
  }
}

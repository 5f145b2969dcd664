internal import CLibAV

/// The codec library that weir is linked with.
package enum CaptureLibrary {
  /// Version and licence as stated by the library: `libavcodec 59.37.100 (GPL version 2 or later)`.
  package static var description: String {
    let version = avcodec_version()
    let licence = avcodec_license().map { String(cString: $0) } ?? "licence unknown"
    return "libavcodec \(version >> 16).\(version >> 8 & 255).\(version & 255) (\(licence))"
  }
}

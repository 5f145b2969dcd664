internal import CLibAV

/// The codec library, which is loaded when it is first used.
package enum CaptureLibrary {
  /// It is not installed, or not in the release that weir was built for.
  package struct Missing: Error, CustomStringConvertible {
    package let description: String
  }

  /// Why it cannot be used, in one line that says what to do. Nil if it can.
  package static var failure: String? { weir_libav_failure().map { String(cString: $0) } }

  /// Asked before a server uses it: a call without it ends the process.
  package static func require() throws(Missing) {
    if let failure { throw Missing(description: failure) }
  }

  /// Version and licence as stated by the library: `libavcodec 59.37.100 (GPL version 2 or later)`. Call it where there is no
  /// `failure`.
  package static var description: String {
    let version = avcodec_version()
    let licence = avcodec_license().map { String(cString: $0) } ?? "licence unknown"
    return "libavcodec \(version >> 16).\(version >> 8 & 255).\(version & 255) (\(licence))"
  }
}

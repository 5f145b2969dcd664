internal import CLibAV

/// An error of a libav* library: what weir attempted, and the library's reason.
package struct LibAVError: Error, Sendable, Hashable, CustomStringConvertible {
  /// What weir attempted: "open the encoder libx264".
  package let attempt: String
  /// The library's code; negative.
  package let code: Int32

  package init(_ attempt: String, code: Int32) {
    self.attempt = attempt
    self.code = code
  }

  package var description: String { "cannot \(attempt): \(reason) (libav error \(code))" }

  /// The library's reason.
  package var reason: String {
    var text = [CChar](repeating: 0, count: 128)
    av_strerror(code, &text, text.count)
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Throws if a libav* call returned a negative code.
  package static func check(_ code: Int32, _ attempt: @autoclosure () -> String) throws(LibAVError) {
    guard code < 0 else { return }
    throw LibAVError(attempt(), code: code)
  }
}

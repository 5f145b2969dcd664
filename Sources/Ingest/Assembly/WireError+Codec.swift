internal import FMP4

extension WireError {
  /// Media in a codec that weir does not support. `name` is printable in a log line.
  static func unsupported(codec name: String) -> WireError {
    let supported = CodecID.allCases.map(\.name).joined(separator: ", ")
    return WireError(.unsupported, "codec \(name) unsupported; supported: \(supported)")
  }
}

package import Base
internal import FMP4

extension WireError {
  /// Media in a codec that weir does not support. `name` is printable in a log line.
  package static func unsupported(codec name: String) -> WireError {
    // Video that has to be encoded anew comes by WebRTC alone, whose offers name codecs.
    let supported = CodecID.allCases.filter { $0.kind == .audio || $0.isCarried }.map(\.name).joined(separator: ", ")
    return WireError(.unsupported, "codec \(name) unsupported; supported: \(supported)")
  }
}

internal import FMP4
internal import NIOCore

/// Codecs as the worker's protocol numbers them.
extension CodecID {
  var workerNumber: UInt8 {
    switch self {
    case .h264: 1
    case .hevc: 2
    case .av1: 3
    case .aac: 4
    case .opus: 5
    }
  }

  /// Takes a number; nil where it is none of a codec of that kind.
  init?(workerNumberIn body: inout ByteBuffer, of kind: MediaKind) {
    guard let number: UInt8 = body.readInteger(),
      let codec = Self.allCases.first(where: { $0.workerNumber == number && $0.kind == kind })
    else { return nil }
    self = codec
  }
}

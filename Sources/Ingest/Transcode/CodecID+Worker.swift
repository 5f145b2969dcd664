internal import FMP4
internal import NIOCore

/// Codecs as the worker's protocol numbers them: from 1 on, in their order. The worker is the same program.
extension CodecID {
  var workerNumber: UInt8 { UInt8(clamping: (Self.allCases.firstIndex(of: self) ?? 0) + 1) }

  /// Takes a number; nil where it is none of a codec of that kind.
  init?(workerNumberIn body: inout ByteBuffer, of kind: MediaKind) {
    guard let number: UInt8 = body.readInteger(),
      let codec = Self.allCases.first(where: { $0.workerNumber == number && $0.kind == kind })
    else { return nil }
    self = codec
  }
}

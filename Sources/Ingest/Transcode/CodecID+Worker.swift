internal import FMP4
internal import NIOCore

/// Codec numbers in the worker's protocol: from 1 on, in the order of the cases. The worker is the same program, so
/// they always agree.
extension CodecID {
  var workerNumber: UInt8 { UInt8(clamping: (Self.allCases.firstIndex(of: self) ?? 0) + 1) }

  /// Reads a codec number. Nil if it is not a codec of that kind.
  init?(workerNumberIn body: inout ByteBuffer, of kind: MediaKind) {
    guard let number: UInt8 = body.readInteger(),
      let codec = Self.allCases.first(where: { $0.workerNumber == number && $0.kind == kind })
    else { return nil }
    self = codec
  }
}

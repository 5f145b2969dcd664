/// What a publisher by WebRTC sent first, decrypted, as `Tests/Fixtures/capture_webrtc.py` kept it.
package struct SenderCapture: Sendable {
  package enum Kind: UInt8, Sendable { case stun, rtp, rtcp, offer }

  package struct Record: Sendable {
    package let kind: Kind
    package let bytes: [UInt8]
  }

  package let records: [Record]

  /// Reads a file of `Tests/Fixtures/webrtc`.
  package init(_ bytes: [UInt8]) {
    var (rest, records) = (bytes[...], [Record]())
    while rest.count >= 3, let first = rest.first, let kind = Kind(rawValue: first) {
      let size = Int(rest[rest.startIndex + 1]) << 8 | Int(rest[rest.startIndex + 2])
      records.append(Record(kind: kind, bytes: Array(rest.dropFirst(3).prefix(size))))
      rest = rest.dropFirst(3 + size)
    }
    self.records = records
  }

  package func all(_ kind: Kind) -> [[UInt8]] { records.filter { $0.kind == kind }.map(\.bytes) }

  /// The offer, with one codec of video.
  package var offer: String { String(decoding: all(.offer).first ?? [], as: UTF8.self) }
}

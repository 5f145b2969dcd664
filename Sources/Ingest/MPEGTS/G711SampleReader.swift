internal import FMP4
internal import NIOCore

/// Takes the samples of G.711 as they come: any number of them is a frame. Bytes of one TS packet are 23 ms.
struct G711SampleReader: AudioFrameReader {
  let coding: CodecID
  private let record = G711.record(sampleRate: rate, channels: 1)
  private var bytes = AudioBytes()

  private static let rate: UInt32 = 8000

  var position: Int { bytes.position }
  var heldBytes: Int { bytes.count }
  var damaged: Int { 0 }

  /// One of the two laws.
  init(_ coding: CodecID) { self.coding = coding }

  mutating func begin() {}
  mutating func append(_ more: ByteBuffer) { bytes.append(more) }
  mutating func drop() { bytes.removeAll() }

  mutating func next() -> AudioFrame? {
    let (position, count) = (bytes.position, min(bytes.count, Int(Self.rate)))
    guard count > 0, let payload = bytes.take(count) else { return nil }
    return AudioFrame(
      position: position, payload: payload, record: record, samples: Int64(count), rate: Self.rate)
  }
}

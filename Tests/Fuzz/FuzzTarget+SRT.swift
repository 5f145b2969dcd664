import NIOCore
@testable import Publishing
@testable import SRT

/// What the worker of SRT reads of callers, and what it and the server read of each other.
extension FuzzTarget {
  static func srt(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    // Cut, with a sign of it.
    precondition(SRTStreamID.shown(text).utf8.count <= SRTLimits.streamIDBytes + 3)
    if let id = try? SRTStreamID(parsing: text, default: StreamName("stage")) {
      precondition(StreamName(id.stream.description) != nil)
      _ = try? SRTTable().admit(id, from: "", judgesKeys: true)
    }
    bytes.withUnsafeBytes { _ = SRTPeer($0) }
    var reader = SRTMessageReader(limit: SRTLimits.messageBytes)
    for piece in [bytes.prefix(bytes.count / 2), bytes.dropFirst(bytes.count / 2)] {
      reader.append(ByteBuffer(bytes: piece))
      while let message = try? reader.next() {
        _ = try? SRTWire.reply(message.type, message.body)
        _ = try? SRTWire.request(message.type, message.body)
      }
    }
  }

  static let srtMessages: [[UInt8]] = {
    let caller = SRTArrival(
      connection: 1, address: "192.0.2.1", port: 2, stream: "cam", key: "k", latency: 120, version: 0x010502,
      isEncrypted: true)
    var table = SRTTable()
    table.entries = [SRTTable.Entry(names: NamePattern("*"), passphrase: SRTPassphrase("0123456789"), latency: 120)]
    table.keys = [SRTTable.Key(names: NamePattern("cam"), digest: Secret("k").digest)]
    table.busy = ["cam": "192.0.2.1"]
    let messages = [
      SRTWire.encode(.arrived(caller)), SRTWire.encode(.figures(1, LinkFigures())), SRTWire.encode(.table(table)),
      SRTWire.encode(.media(1, lost: 2, ByteBuffer(repeating: 0x47, count: 188))),
    ]
    return messages.map { Array($0.readableBytesView) } + [
      Array("#!::r=live/cam,m=publish,u=me,s=key".utf8), Array("publish:cam:me:key".utf8), Array("cam?key=%41".utf8),
      Array("#!::bmd_uuid=1,bmd_name=x,u=cam?key=%41".utf8), Array("srt%3A%2F%2Fhost%3A8890%2Flive%2Fcam".utf8),
    ]
  }()
}

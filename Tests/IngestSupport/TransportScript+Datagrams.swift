package import NIOCore

extension TransportScript {
  /// Audio of some seconds, one frame in each PES packet, as datagrams of up to seven packets.
  package static func datagrams(frames: Int = 100, isMapped: Bool = true) -> [ByteBuffer] {
    var script = TransportScript()
    for frame in 0..<frames {
      if isMapped, frame % 20 == 0 {
        script.add(table: 0, association([(1, pid: 4096)]))
        script.add(table: 4096, map(1, [(type: 0x0F, pid: 256, more: [])]))
      }
      let time = UInt64(90_000 + frame * 1920)
      script.add(256, pes(0xC0, time, adts([UInt8](repeating: 33, count: 50))))
    }
    return stride(from: 0, to: script.bytes.count, by: 7 * 188).map {
      ByteBuffer(bytes: script.bytes[$0..<min($0 + 7 * 188, script.bytes.count)])
    }
  }
}

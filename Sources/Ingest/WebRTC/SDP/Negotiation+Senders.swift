internal import NIOCore

/// Which track a sender (SSRC) belongs to.
extension Negotiation {
  /// The track of a sender of media.
  func track(of packet: RTPPacket) -> Track? {
    track(of: packet, named: ridNumber, among: tracks.filter { $0.format.payloadType == packet.payloadType })
  }

  /// The track whose packets a sender sends again (RFC 4588).
  func track(repairedBy packet: RTPPacket) -> Track? {
    track(of: packet, named: repairedNumber, among: tracks.filter { $0.repair == packet.payloadType })
  }

  /// By the names that its packet has (mid and rid), by the offer, by its payload type (RFC 9143 §9.2, RFC 8852). An encoding of
  /// simulcast is known by its name alone.
  private func track(of packet: RTPPacket, named number: UInt8?, among fitting: [Track]) -> Track? {
    guard !fitting.isEmpty else { return nil }
    // A mid that the offer does not have is ignored.
    let section = name(packet.value(of: midNumber)).flatMap { name in tracks.contains { $0.mid == name } ? name : nil }
    let named = section.map { name in fitting.filter { $0.mid == name } } ?? []
    if let rid = name(packet.value(of: number)),
      let encoding = (section == nil ? fitting : named).first(where: { $0.rid == rid })
    {
      return encoding
    }
    let plain = fitting.filter { $0.rid == nil }
    return named.first { $0.rid == nil } ?? plain.first { $0.sources.contains(packet.source) }
      ?? (plain.count == 1 && fitting.count == 1 ? plain.first : nil)
  }

  private func name(_ value: ByteBuffer?) -> String? { value.map { String(buffer: $0) } }
}

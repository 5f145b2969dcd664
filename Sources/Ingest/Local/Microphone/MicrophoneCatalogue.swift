internal import CALSA
internal import Glibc

/// A microphone in the list of `weir devices`.
package struct MicrophoneListing: Sendable, Hashable {
  /// Name in a source: `hw:1,0`.
  package var device: String
  /// Empty if access is forbidden.
  package var name: String
  /// Why it cannot be used. Nil if it can.
  package var problem: CaptureError?
}

/// The microphones of this machine's audio cards.
package enum MicrophoneCatalogue {
  package static func list() -> [MicrophoneListing] {
    weir_alsa_quiet()
    var found: [MicrophoneListing] = []
    var card: Int32 = -1
    while snd_card_next(&card) >= 0, card >= 0 { found += devices(card) }
    let usable = Set(found.map(\.device))
    return found + forbidden().filter { !usable.contains($0.device) }
  }

  /// Whether there are microphones, but this process may use none of them.
  static var areForbidden: Bool {
    let all = list()
    return !all.isEmpty && all.allSatisfy { $0.problem != nil }
  }

  /// Microphones that the library skips because it may not open their card. Found by their device nodes.
  private static func forbidden() -> [MicrophoneListing] {
    let folder = "/dev/snd"
    guard let entries = opendir(folder) else { return [] }
    defer { closedir(entries) }
    var found: [(card: Int, device: Int)] = []
    while let entry = readdir(entries) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      guard let place = place(name), access("\(folder)/\(name)", R_OK | W_OK) != 0, errno == EACCES else { continue }
      found.append(place)
    }
    return found.sorted { ($0.card, $0.device) < ($1.card, $1.device) }.map { place in
      let device = "hw:\(place.card),\(place.device)"
      return MicrophoneListing(device: device, name: "", problem: CaptureError(.microphone(device), .forbidden))
    }
  }

  /// Card and device of a node for capture: `pcmC1D0c` is device 0 of card 1.
  static func place(_ node: String) -> (card: Int, device: Int)? {
    guard node.hasPrefix("pcmC"), node.hasSuffix("c") else { return nil }
    let numbers = node.dropFirst(4).dropLast().split(separator: "D", omittingEmptySubsequences: false)
    guard numbers.count == 2, let card = Int(numbers[0]), let device = Int(numbers[1]) else { return nil }
    return (card, device)
  }

  private static func devices(_ card: Int32) -> [MicrophoneListing] {
    var opened: OpaquePointer?
    guard snd_ctl_open(&opened, "hw:\(card)", 0) >= 0, let control = opened else { return [] }
    defer { snd_ctl_close(control) }
    var allocated: OpaquePointer?
    guard snd_pcm_info_malloc(&allocated) >= 0, let info = allocated else { return [] }
    defer { snd_pcm_info_free(info) }
    var found: [MicrophoneListing] = []
    var device: Int32 = -1
    while snd_ctl_pcm_next_device(control, &device) >= 0, device >= 0 {
      snd_pcm_info_set_device(info, UInt32(device))
      snd_pcm_info_set_subdevice(info, 0)
      snd_pcm_info_set_stream(info, SND_PCM_STREAM_CAPTURE)
      guard snd_ctl_pcm_info(control, info) >= 0 else { continue }
      let name = snd_pcm_info_get_name(info).map { String(cString: $0) } ?? ""
      found.append(MicrophoneListing(device: "hw:\(card),\(device)", name: "\(cardName(card)), \(name)"))
    }
    return found
  }

  private static func cardName(_ card: Int32) -> String {
    var text: UnsafeMutablePointer<CChar>?
    guard snd_card_get_name(card, &text) >= 0, let text else { return "card \(card)" }
    defer { free(text) }
    return String(cString: text)
  }
}

internal import CALSA
internal import Glibc

/// A microphone as `weir devices` lists it.
package struct MicrophoneListing: Sendable, Hashable {
  /// As a source names it: `hw:1,0`.
  package var device: String
  package var name: String
}

/// The sound cards of this machine that can listen.
package enum MicrophoneCatalogue {
  package static func list() -> [MicrophoneListing] {
    weir_alsa_quiet()
    var found: [MicrophoneListing] = []
    var card: Int32 = -1
    while snd_card_next(&card) >= 0, card >= 0 { found += devices(card) }
    return found
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

internal import Base
internal import HTTP

/// The addresses that weir listens on, its certificate, and its public address.
struct ListenerOptions: TitledSettings {
  static let title = "Listeners"

  let http = Setting("http", at: "http.listen", .address, default: ":8080", "Address for pages, playlists and media.")
  let https = Setting("https", at: "https.listen", .address, "The same over TLS.")
  let rtmp = Setting("rtmp", at: "rtmp.listen", .address, default: ":1935", "Address for RTMP publishers.")
  let rtmps = Setting("rtmps", at: "rtmps.listen", .address, "The same over TLS.")
  let srt = Setting("srt", at: "srt.listen", .address, "Address for SRT publishers (UDP).")
  let webRTC = Setting(
    "webrtc", at: "webrtc.listen", .address,
    "Address for the media of WebRTC publishers and viewers (UDP and TCP); their offers come by HTTP.")
  let webRTCAddress = Setting(
    each: "webrtc-address", at: "webrtc.publicAddresses", SettingText("host[:port]", PublicMediaAddress.parse),
    "Addresses that WebRTC publishers and viewers are told, in place of this machine's: behind NAT.")
  let iceServers = Setting(
    each: "webrtc-ice-server", at: "webrtc.iceServers", SettingText("url", ICEServerText.parse), isSecret: true,
    "STUN and TURN servers that WebRTC publishers and viewers are told: turn:USER:CREDENTIAL@HOST:3478.")
  let tlsCert = Setting("tls-cert", at: "tls.certificate", .file, "Certificate chain (PEM) for HTTPS and RTMPS.")
  let tlsKey = Setting("tls-key", at: "tls.key", .file, "Its private key (PEM).")
  let tlsMin = Setting<TLSMinimum>(
    "tls-min", at: "rtmps.tlsMinimum", .word, default: "1.2",
    "The oldest TLS of RTMPS: 1.0 or 1.1 for old encoders, 1.2, 1.3.")
  let control = Setting(
    "control", at: "control.socket", SettingText("path|off", ControlSocket.Place.parse),
    "Unix socket for commands to the running server; usually /run/weir/weir.sock or $XDG_RUNTIME_DIR/weir.sock.")
  let publicURL = Setting(
    "public-url", at: "publicURL", SettingText("url", PublicURL.init(parsing:)),
    "Where viewers find this server: https://live.example.com.")

  /// Nil without a certificate; an error if a TLS listener is set.
  func tls(_ given: SettingSources) throws(ConfigurationError) -> TLSFiles? {
    let secure = try (given[https] != nil, given[rtmps] != nil)
    switch try (given[tlsCert], given[tlsKey]) {
    case (nil, nil):
      guard !secure.0, !secure.1 else {
        throw given.error(
          secure.0 ? https : rtmps, "needs a certificate", "add \(tlsCert.name.flag) FILE and \(tlsKey.name.flag) FILE")
      }
      return nil
    case (let certificate?, let key?):
      guard secure.0 || secure.1 else {
        throw given.error(tlsCert, "no listener uses the certificate", "add --https :8443 or --rtmps :1936")
      }
      return TLSFiles(
        certificate: certificate, key: key, certificateOrigin: tlsCert.name.origin, keyOrigin: tlsKey.name.origin)
    case (.some, nil): throw given.error(tlsCert, "a certificate needs its private key", "add \(tlsKey.name.flag) FILE")
    case (nil, .some): throw given.error(tlsKey, "a private key needs its certificate", "add \(tlsCert.name.flag) FILE")
    }
  }

  /// Checks that no two listeners of TCP, and no two of UDP, have the same address, unless the system chooses the port.
  func checkAddresses(_ given: SettingSources) throws(ConfigurationError) {
    func take(
      _ setting: some SettingDeclaration, _ address: ListenAddress?, of taken: inout [ListenAddress: SettingName]
    ) throws(ConfigurationError) {
      guard let address, address.port != 0 else { return }
      if let other = taken.updateValue(setting.name, forKey: address) {
        throw given.error(setting, "\(other.flag) listens there already", "choose another port")
      }
    }
    var (tcp, udp): ([ListenAddress: SettingName], [ListenAddress: SettingName]) = ([:], [:])
    try take(http, given[http], of: &tcp)
    try take(https, given[https], of: &tcp)
    try take(rtmp, given[rtmp], of: &tcp)
    try take(rtmps, given[rtmps], of: &tcp)
    try take(webRTC, given[webRTC], of: &tcp)
    try take(srt, given[srt], of: &udp)
    try take(webRTC, given[webRTC], of: &udp)
  }
}

extension ControlSocket.Place {
  fileprivate static func parse(_ text: String) throws(ValueError) -> ControlSocket.Place {
    if text == "off" { return .none }
    guard text.hasPrefix("/") || text.hasPrefix("./") || text.hasPrefix("../") else {
      throw ValueError("that is not a path", advice: "write /run/weir/weir.sock, ./weir.sock or off")
    }
    return .path(text)
  }
}

extension SettingText<ListenAddress> {
  static var address: Self { Self("addr", ListenAddress.init(parsing:)) }
}

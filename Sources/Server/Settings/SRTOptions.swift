internal import Base
package import SRT

/// Settings of SRT that a stream may have of its own.
struct SRTOptions: TitledSettings {
  static let title = "Publishers"

  let passphrase = Setting(
    "srt-passphrase", at: "streams.*.srt.passphrase", SettingText("passphrase", SRTPassphrase.parse), isSecret: true,
    "Passphrase that SRT publishers must encrypt with: 10 to 79 characters.")
  let latency = Setting(
    "srt-latency", at: "streams.*.srt.latency", .duration(.milliseconds(20) ... .seconds(30)), default: "120ms",
    "How long SRT waits for missing packets; the larger of both sides' counts.")

  func settings(_ given: SettingSources) throws(ConfigurationError) -> SRTSettings {
    SRTSettings(passphrase: try given[passphrase], latency: UInt16(clamping: try given[latency].wholeMilliseconds))
  }
}

/// The settings of SRT of a stream.
package struct SRTSettings: Sendable {
  package var passphrase: SRTPassphrase?
  /// Milliseconds.
  package var latency: UInt16
}

extension SRTPassphrase {
  fileprivate static func parse(_ text: String) throws(ValueError) -> SRTPassphrase {
    guard let passphrase = SRTPassphrase(text) else {
      throw ValueError("it has \(text.utf8.count) characters", advice: "use 10 to 79 characters")
    }
    return passphrase
  }
}

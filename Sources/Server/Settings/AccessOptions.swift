internal import Base
internal import Control

/// Who may publish, and who is asked about it.
struct AccessOptions: TitledSettings {
  static let title = "Publishers"

  let publishers = Setting<PublishersRule>(
    "publishers", at: "access.publishers", .word, default: "auto",
    "When publishers need a key: from the first key on (auto), always (key), or only while there is one (open).")
  let callback = Setting(
    "auth-callback", at: "access.callback.url", SettingText("url", CallbackAddress.parse),
    "Address that is asked whether a publisher may publish (POST, JSON); 2xx admits, 401, 403 and 404 refuse.")
  let callbackTimeout = Setting(
    "auth-callback-timeout", at: "access.callback.timeout", .duration(.milliseconds(100) ... .seconds(5)),
    default: "2s", "How long its answer may take.")
  let callbackMemory = Setting(
    "auth-callback-cache", at: "access.callback.cache", .duration(.zero ... .seconds(3600)), default: "10s",
    "How long its answer holds for the same question.")
  let callbackOtherwise = Setting<AuthorizationCallback.Otherwise>(
    "auth-callback-otherwise", at: "access.callback.otherwise", .word, default: "refuse",
    "What holds when it does not answer.")

  func callback(_ given: SettingSources) throws(ConfigurationError) -> AuthorizationCallback.Settings? {
    guard let url = try given[callback] else { return nil }
    return AuthorizationCallback.Settings(
      url: url, patience: try given[callbackTimeout], memory: try given[callbackMemory],
      otherwise: try given[callbackOtherwise])
  }
}

private enum CallbackAddress {
  @Sendable static func parse(_ text: String) throws(ValueError) -> String {
    try OutgoingRequest.check(text)
    return text
  }
}

/// Where events are told: to a web server, or to a program. From the configuration file alone.
package struct HookSettings: Sendable {
  package enum Action: Sendable {
    /// Sends the event to an address, signed if there is a secret.
    case post(url: String, secret: WebhookSecret?)
    /// Runs a program with arguments, without a shell.
    case run(HookCommand)
  }

  /// Names its place in the log, and its deliveries in the API.
  package var name: String
  package var filter: EventFilter
  package var action: Action
  /// Equal for equal hooks. No secret can be read out of it.
  package var definition: [UInt8] = []

  package init(name: String, filter: EventFilter, action: Action, definition: [UInt8] = []) {
    (self.name, self.filter, self.action, self.definition) = (name, filter, action, definition)
  }

  /// The most hooks.
  package static let limit = 64
  /// What one hook does at a time.
  static let atOnce = 4
  /// The most events of one hook in memory. The others wait in the log.
  static let window = 1000
  /// The most streams whose event is tried again. They take none of those places.
  static let heldUp = 10_000
  /// The most of one stream among them. Of a stream whose event is tried again, it is that event alone.
  static let ofStream = 32
  /// Seconds from a failed attempt to the next one. After the last the event is given up for this hook: a day in all.
  static let retries: [Int64] = [5, 300, 1800, 7200, 18_000, 28_800, 30_600]

  /// What the API shows of the action: no query, which may hold a token.
  package var target: String {
    switch action {
    case .post(let url, _): String(url.prefix { $0 != "?" && $0 != "#" })
    case .run(let command): command.words.first ?? ""
    }
  }
}

internal import Basics
internal import Ingest
internal import NIOCore

/// A protocol by which publishers come: what listens, and where. A server is given a list of them.
struct PublisherProtocol: Sendable {
  /// Where it is to listen, by the setting that says so.
  struct Place: Sendable {
    var setting: SettingName
    var address: ListenAddress
    var isSecure = false
  }

  /// Where it listens.
  struct Endpoint: Sendable {
    var setting: SettingName
    var address: SocketAddress
    var of: PublisherProtocol

    /// What publishers are given as the server's address.
    var server: String { "\(setting.text)://\(address.authority)\(of.path)" }
  }

  var listener: any IngestListener
  var places: [Place]
  /// What stands behind name and port of the server.
  var path: String
  /// What people are told who want to publish; `key` follows the stream's name.
  var invitation: @Sendable (_ server: String, _ key: String) -> String
}

internal import Publishing
internal import Base
internal import NIOCore
internal import Settings

/// A protocol for publishers: its listener and its addresses. The server has a list of them.
struct PublisherProtocol: Sendable {
  /// An address to listen on, with its setting.
  struct Place: Sendable {
    var setting: SettingName
    var address: ListenAddress
    var isSecure = false
  }

  /// An address that it listens on.
  struct Endpoint: Sendable {
    var setting: SettingName
    var address: SocketAddress
    var of: PublisherProtocol

    /// The server address for publishers.
    var server: String { server(at: address.authority) }

    /// The same by another name of this machine.
    func server(at authority: String) -> String { "\(setting.text)://\(authority)\(of.path)" }
  }

  var listener: any IngestListener
  /// The addresses of a configuration.
  var places: @Sendable (ServerConfiguration) -> [Place]
  /// Path after the name and port of the server.
  var path: String
  /// The publishing instructions; `key` follows the stream's name.
  var invitation: @Sendable (_ server: String, _ key: String) -> String

  init(
    listener: any IngestListener, places: @escaping @Sendable (ServerConfiguration) -> [Place], path: String,
    invitation: @escaping @Sendable (_ server: String, _ key: String) -> String
  ) {
    (self.listener, self.places, self.path, self.invitation) = (listener, places, path, invitation)
  }
}

/// The settings of HTTP that change while the server runs. New connections and requests follow the newest.
package struct HTTPPolicy: Sendable {
  /// Which origins may read which responses.
  package var origins: CrossOrigin
  /// The names under which the server answers, but for those of its certificate.
  package var hosts: AllowedHosts
  /// The most connections at once.
  package var connections: Int
  /// The most connections of one address; nil for no limit.
  package var connectionsPerAddress: Int?
  /// Requests a second on one connection for one unchanged playlist; 0 for no limit.
  package var repeatedPolls: Int

  package init(_ limits: HTTPLimits, origins: CrossOrigin, hosts: AllowedHosts = AllowedHosts()) {
    (self.origins, self.hosts) = (origins, hosts)
    connections = limits.connections
    connectionsPerAddress = limits.connectionsPerAddress
    repeatedPolls = limits.repeatedPolls
  }
}

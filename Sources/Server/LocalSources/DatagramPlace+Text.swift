internal import Base
internal import Local
internal import NIOCore

extension DatagramPlace {
  private static let advice =
    "write udp://239.1.1.1:5000, udp://127.0.0.1:5000 or udp://:5000, with ?OPTION=VALUE&… behind it"

  /// Parses `239.1.1.1:5000?interface=eth0&program=2&from=192.0.2.7`, and `@` in front of it, as players write it.
  init(parsing text: String) throws(ValueError) {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let place = parts.first.map { String($0.hasPrefix("@") ? $0.dropFirst() : $0) } ?? ""
    let listen: ListenAddress
    do {
      listen = try ListenAddress(parsing: place)
    } catch {
      throw ValueError(error.reason, advice: Self.advice)
    }
    let host =
      switch listen.host {
      case .any: "0.0.0.0"
      case .ipv4(let host), .ipv6(let host): host
      }
    guard listen.port > 0, let address = try? SocketAddress(ipAddress: host, port: Int(listen.port)) else {
      throw ValueError("the port is 0", advice: Self.advice)
    }
    self.init(address: address)
    for option in parts.dropFirst().flatMap({ $0.split(separator: "&") }) {
      let sides = option.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
      guard sides.count == 2, !sides[1].isEmpty else {
        throw ValueError("the option \"\(option)\" has no value", advice: Self.advice)
      }
      switch sides[0] {
      case "interface": interface = sides[1]
      case "program": program = UInt16(try OptionValues.number("program", sides[1], 1...65535))
      case "from":
        guard let sender = try? SocketAddress(ipAddress: sides[1], port: 0) else {
          throw ValueError("from=\(sides[1]) is no IP address", advice: "write from=192.0.2.7")
        }
        self.sender = sender
      default:
        throw ValueError("udp has no option \"\(sides[0])\"", advice: "use interface, program or from")
      }
    }
  }
}

internal import Base
internal import Glibc
internal import Local
internal import SRT

extension SRTSource.Target {
  private static let advice = "write srt://HOST:PORT?streamid=ID&latency=120&passphrase-variable=NAME&program=NUMBER"

  /// Parses `HOST:PORT?streamid=ID&latency=MILLISECONDS&passphrase-variable=NAME`. The passphrase is in that variable of
  /// the environment, since every user of the machine can read a command line.
  init(parsing text: String) throws(ValueError) {
    let parts = text.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    let place = parts.first ?? ""
    guard let colon = place.lastIndex(of: ":"), let port = UInt16(place[place.index(after: colon)...]), port > 0,
      colon > place.startIndex
    else { throw ValueError("an SRT source needs a host and a port", advice: Self.advice) }
    var host = place[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
    self.init(host: String(host), port: port, latency: 120)
    guard parts.count > 1 else { return }
    for member in parts[1].split(separator: "&") {
      let pair = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      let value = pair.count > 1 ? pair[1].percentDecoded : ""
      switch pair[0] {
      case "streamid": streamID = value
      case "program": program = UInt16(try OptionValues.number("program", value, 1...65535))
      case "latency":
        guard let milliseconds = UInt16(value), (20...30_000).contains(milliseconds) else {
          throw ValueError("the latency is no number of milliseconds from 20 to 30000", advice: Self.advice)
        }
        latency = milliseconds
      case "passphrase-variable":
        guard let found = getenv(value).map({ String(cString: $0) }) else {
          throw ValueError("there is no variable \(LogText.escaped(value)) with its passphrase", advice: Self.advice)
        }
        guard let phrase = SRTPassphrase(found) else {
          throw ValueError(
            "the passphrase in \(LogText.escaped(value)) has not 10 to 79 characters", advice: Self.advice)
        }
        passphrase = phrase
      default:
        throw ValueError("an SRT source has no setting \"\(LogText.escaped(String(pair[0])))\"", advice: Self.advice)
      }
    }
    guard streamID.utf8.count <= 512 else {
      throw ValueError("the stream ID is longer than 512 bytes", advice: Self.advice)
    }
  }
}

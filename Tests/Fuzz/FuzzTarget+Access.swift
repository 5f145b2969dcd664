@testable import Control
@testable import Delivery
@testable import FMP4
import FoundationEssentials
@testable import HTTP
import NIOCore
@testable import Publishing
@testable import Settings

extension FuzzTarget {
  /// The bytes as a token, as the claims of one, and as a key set. Signatures are never right, and never asked for.
  static func token(_ bytes: [UInt8]) {
    read(String(decoding: bytes, as: UTF8.self))
    let claims = Data(bytes).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
    read("eyJhbGciOiJFUzI1NiJ9.\(claims.replacing("=", with: "")).AA")
    if let keys = try? JSONWebKeySet.keys(in: bytes) { precondition(keys.count <= JSONWebKeySet.keys) }
    _ = try? JSONWebKeySet.keys(inPEM: String(decoding: bytes, as: UTF8.self))
  }

  private static func read(_ text: String) {
    guard let token = try? JSONWebToken(parsing: text), let claims = try? token.claims() else { return }
    let now = WallTime(nanoseconds: 1_800_000_000_000_000_000)
    guard let grant = try? claims.grant(JSONWebTokenRules(), now: now) else { return }
    precondition(grant.holds(at: now))
    _ = StreamName("cam").map { grant.allows(.watch, of: $0) }
  }

  /// A file as a whole: what it says is read, and its settings are checked. No message has more than a few lines.
  static func configuration(_ text: String) {
    do throws(ConfigurationError) {
      let file = try ConfigFile(text, name: "weir.yaml")
      precondition(file.entries.count <= ConfigFile.entryLimit && file.keys.keys.count <= KeyReading.limit)
      let sources = SettingSources(file: file)
      _ = try ServerConfiguration(loading: sources)
      _ = try SettingChanges(from: SettingSources(), to: sources)
    } catch {
      precondition(error.description.utf8.count < 2 * ConfigNode.Limits.bytes)
    }
  }

  /// A target that may begin with a token.
  static func prefix(_ bytes: [UInt8]) {
    let target = ByteBuffer(bytes: bytes)
    guard let parts = TokenPrefix.split(target) else { return }
    precondition(parts.token.readableBytes + parts.rest.readableBytes < bytes.count)
    precondition(
      parts.rest.readableBytes == 0
        || [UInt8(ascii: "/"), UInt8(ascii: "?")].contains(parts.rest.readableBytesView.first))
    if let text = TokenPrefix.text(parts.token) { precondition(text.utf8.count <= TokenPrefix.bytes) }
    guard let path = try? RequestTarget(parsing: String(buffer: parts.rest)).segments else { return }
    _ = ViewerGate.stream(at: path)
  }
}

@testable import Base
@testable import FMP4
@testable import HTTP
import NIOCore
@testable import Playlists
@testable import Publishing
@testable import RecordingFiles
@testable import Settings
@testable import Streams

/// Words that stand in addresses and fields.
extension FuzzTarget {
  static func names(_ text: String) {
    if let name = StreamName(text) { precondition(!"\(name)".isEmpty && "\(name)".count <= 255) }
    _ = Rendition(pathSegment: text)
    if case .part(let position)? = MediaName.parse(text) { precondition(MediaName.part(position) == text) }
    if case .firstPart(let number, let version)? = MediaName.parse(text) {
      precondition(MediaName.firstPart(ofSegment: number, initVersion: version) == text)
    }
    for name in [RecordingName(finished: text), RecordingName(unfinished: text), RecordingName(base: text)] {
      precondition(!(name?.finished.contains("/..") ?? false))
    }
    _ = try? PublishKeyText.parse(text, namesItsStream: true)
  }

  static func query(_ bytes: [UInt8]) {
    guard let target = try? RequestTarget(parsing: "/x?" + String(decoding: bytes, as: UTF8.self)) else { return }
    if let directives = try? HLSDirectives(target.query) { _ = directives.goal.map { "\($0)" } }
    _ = try? CatalogueQuery(HTTPRequest(method: .get, target: target))
  }

  static func times(_ text: String) {
    if let time = UTCText.read(text) {
      // Whatever is read is written, and read again.
      precondition(UTCText.read(UTCText(time).internet) != nil || time < .zero, text)
    }
    _ = try? DurationText.parse(text)
    _ = try? ByteSizeText.parse(text)
  }

  /// As a PROXY header, and as a list of addresses.
  static func proxies(_ bytes: [UInt8]) {
    var buffer = ByteBuffer(bytes: bytes)
    if let found = try? ProxyHeader.take(from: &buffer), found == .incomplete {
      precondition(buffer.readableBytes == bytes.count && bytes.count < ProxyHeader.longest + 16)
    }
    let text = String(decoding: bytes, as: UTF8.self)
    let ranges = text.split(separator: ",").prefix(4).compactMap { AddressRange(parsing: $0) }
    let proxy = NetworkAddress(network: 0, interface: 0xFFFF_7F00_0001)
    let client = TrustedProxies(ranges).client(behind: proxy, told: [text])
    precondition(client == proxy || NetworkAddress(parsing: client.hostText.split(separator: "/")[0]) != nil)
  }
}

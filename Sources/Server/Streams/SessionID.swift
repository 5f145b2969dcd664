package import Base
package import FMP4
package import Publishing
internal import Synchronization

/// The id of a session of a publisher or a viewer, unique beyond the process: a letter for the kind, a random number of the
/// process, and a count.
package struct SessionID: Sendable, Hashable, Comparable, CustomStringConvertible {
  package enum Kind: String, Sendable {
    case publisher, viewer
  }

  package let kind: Kind
  private let number: Int

  private static let process = String(UInt32.random(in: 0...UInt32.max), radix: 36)
  private static let count = Atomic(0)

  /// A new one.
  init(_ kind: Kind) {
    (self.kind, number) = (kind, Self.count.wrappingAdd(1, ordering: .relaxed).newValue)
  }

  /// One of this process, as `description` has it. Nil for any other text.
  package init?(_ text: String) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[1] == Self.process, let number = Int(parts[2]) else { return nil }
    switch parts[0] {
    case "p": kind = .publisher
    case "v": kind = .viewer
    default: return nil
    }
    self.number = number
    guard description == text else { return nil }
  }

  /// Publishers before viewers, each in the order in which they came.
  package static func < (a: SessionID, b: SessionID) -> Bool {
    a.kind == b.kind ? a.number < b.number : a.kind == .publisher
  }

  package var description: String { "\(kind.rawValue.prefix(1))-\(Self.process)-\(number)" }
}

/// A session of a publisher.
package struct PublisherSession: Sendable {
  package var id: SessionID
  package var stream: StreamName
  package var protocolName: String
  /// Address and port; nil for the server's own sources.
  package var remoteAddress: String?
  /// As the publisher states it; possibly empty.
  package var software: String
  package var since: WallTime
  /// Of coded media.
  package var bytes: Int
}

/// The open response without an end of a viewer, or its session of WebRTC.
package struct ViewerSession: Sendable {
  package var id: SessionID
  package var stream: StreamName
  package var host: NetworkAddress?
  package var since: MonotonicTime
  package var delivery: ViewerProtocol
}

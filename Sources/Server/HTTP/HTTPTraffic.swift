internal import Synchronization

/// What goes through the HTTP server: counted by its event loops, read by whoever wants to know.
package final class HTTPTraffic: Sendable {
  package enum Count: Sendable {
    /// Bytes of heads and bodies that sockets took.
    case http1Bytes
    /// Bytes of bodies that sockets took.
    case http2Bytes
    /// Connections that are there now.
    case openConnections
    /// Connections that only heard that there is no room for them.
    case refusedConnections
    /// Connections that were closed without a word.
    case droppedConnections
    /// Requests of connections that ask for one unchanged playlist again and again.
    case refusedPolls
    /// Viewers that were cut: they took too little, what they had not taken left its window too long ago, or a stream needed
    /// their descriptors.
    case slowViewers
    case lateViewers
    case shedViewers
  }

  private let http1Bytes = Atomic(0)
  private let http2Bytes = Atomic(0)
  private let openConnections = Atomic(0)
  private let refusedConnections = Atomic(0)
  private let droppedConnections = Atomic(0)
  private let refusedPolls = Atomic(0)
  private let slowViewers = Atomic(0)
  private let lateViewers = Atomic(0)
  private let shedViewers = Atomic(0)

  package init() {}

  package func add(_ count: Count, _ more: Int = 1) {
    switch count {
    case .http1Bytes: http1Bytes.wrappingAdd(more, ordering: .relaxed)
    case .http2Bytes: http2Bytes.wrappingAdd(more, ordering: .relaxed)
    case .openConnections: openConnections.wrappingAdd(more, ordering: .relaxed)
    case .refusedConnections: refusedConnections.wrappingAdd(more, ordering: .relaxed)
    case .droppedConnections: droppedConnections.wrappingAdd(more, ordering: .relaxed)
    case .refusedPolls: refusedPolls.wrappingAdd(more, ordering: .relaxed)
    case .slowViewers: slowViewers.wrappingAdd(more, ordering: .relaxed)
    case .lateViewers: lateViewers.wrappingAdd(more, ordering: .relaxed)
    case .shedViewers: shedViewers.wrappingAdd(more, ordering: .relaxed)
    }
  }

  package subscript(count: Count) -> Int {
    switch count {
    case .http1Bytes: http1Bytes.load(ordering: .relaxed)
    case .http2Bytes: http2Bytes.load(ordering: .relaxed)
    case .openConnections: openConnections.load(ordering: .relaxed)
    case .refusedConnections: refusedConnections.load(ordering: .relaxed)
    case .droppedConnections: droppedConnections.load(ordering: .relaxed)
    case .refusedPolls: refusedPolls.load(ordering: .relaxed)
    case .slowViewers: slowViewers.load(ordering: .relaxed)
    case .lateViewers: lateViewers.load(ordering: .relaxed)
    case .shedViewers: shedViewers.load(ordering: .relaxed)
    }
  }
}

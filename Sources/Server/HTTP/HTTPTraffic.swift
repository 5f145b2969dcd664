internal import Synchronization

/// Counters of the HTTP server. The event loops count; any thread can read.
package final class HTTPTraffic: Sendable {
  package enum Count: Sendable {
    /// Bytes of heads and bodies that sockets took.
    case http1Bytes
    /// Bytes of bodies that sockets took.
    case http2Bytes
    /// Open connections.
    case openConnections
    /// Connections that got the response that the server is full.
    case refusedConnections
    /// Connections that were closed without a response, or that might only probe.
    case droppedConnections
    /// Requests that exceeded the limit of repeated polls.
    case refusedPolls
    /// Disconnected viewers: too slow; unsent media left its window too long ago; a stream needed their descriptors.
    case slowViewers
    case lateViewers
    case shedViewers
    /// Served connections that were closed for one of another address.
    case displacedConnections
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
  private let displacedConnections = Atomic(0)

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
    case .displacedConnections: displacedConnections.wrappingAdd(more, ordering: .relaxed)
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
    case .displacedConnections: displacedConnections.load(ordering: .relaxed)
    }
  }
}

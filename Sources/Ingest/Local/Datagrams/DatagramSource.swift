package import Base
package import FMP4
package import Logging
package import NIOCore
package import Publishing
internal import Synchronization

/// A transport stream that arrives by UDP, unicast or multicast, as a publisher. It is published once its media has come.
/// After a silence its connection counts as lost, and it may come back.
package final class DatagramSource: MediaSource {
  private struct State {
    var lease: DatagramSockets.Lease?
    var address: SocketAddress?
    var ending: EndReason?
  }

  package let name: StreamName
  private let place: DatagramPlace
  private let gate: any PublishGate
  private let clock: SteadyClock
  private let logger: Logger
  private let group: any EventLoopGroup
  private let sockets: DatagramSockets
  private let figures = ReceptionFigures()
  private let state = Mutex(State())

  /// - Parameter sockets: shared with other sources that may have the same address.
  package init(
    name: StreamName, place: DatagramPlace, gate: any PublishGate, clock: SteadyClock, logger: Logger,
    group: any EventLoopGroup, sockets: DatagramSockets = DatagramSockets()
  ) {
    self.name = name
    self.place = place
    self.gate = gate
    self.clock = clock
    var logger = logger
    logger[metadataKey: "stream"] = "\(name)"
    self.logger = logger
    self.group = group
    self.sockets = sockets
  }

  package var reception: ReceptionStatus? { figures.status }

  /// The address that it receives at, while it runs.
  var localAddress: SocketAddress? { state.withLock { $0.address } }

  package func stop(_ reason: EndReason) {
    let lease = state.withLock { state in
      state.ending = state.ending ?? reason
      return state.lease.take()
    }
    if let lease { sockets.leave(place, lease) }
  }

  @discardableResult
  package func run() async -> EndReason {
    let lease: DatagramSockets.Lease
    do {
      lease = try await sockets.join(place, on: group) { [self] in
        DatagramReceiver(name, place, gate: gate, clock: clock, logger: logger, figures: figures) { self.ending }
      }
    } catch {
      let reason = EndReason.failed("cannot receive at \(place.text): \(error)")
      logger.error("\(reason.text)")
      return reason
    }
    logger.notice("receives MPEG-TS at \(DatagramPlace(address: lease.channel.localAddress ?? place.address).text)")
    let isEnding = state.withLock { state in
      (state.lease, state.address) = (lease, lease.channel.localAddress)
      return state.ending != nil
    }
    if isEnding { stop(.finished) }
    await withTaskCancellationHandler {
      try? await lease.ended.get()
    } onCancel: {
      stop(.shutdown)
    }
    // The system may have closed the socket.
    if let left = state.withLock({ $0.lease.take() }) { sockets.leave(place, left) }
    return ending
  }

  private var ending: EndReason { state.withLock { $0.ending } ?? .failed("the socket was closed") }
}

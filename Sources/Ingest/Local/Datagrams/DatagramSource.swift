package import FMP4
package import Logging
package import NIOCore
internal import NIOPosix
internal import Synchronization

/// A transport stream that arrives by UDP, unicast or multicast, as a publisher. It is published once its media has come.
/// After a silence its connection counts as lost, and it may come back.
package final class DatagramSource: MediaSource {
  private struct State {
    var channel: (any Channel)?
    var ending: EndReason?
  }

  package let name: StreamName
  private let place: DatagramPlace
  private let gate: any PublishGate
  private let clock: SteadyClock
  private let logger: Logger
  private let group: any EventLoopGroup
  private let figures = ReceptionFigures()
  private let state = Mutex(State())

  package init(
    name: StreamName, place: DatagramPlace, gate: any PublishGate, clock: SteadyClock, logger: Logger,
    group: any EventLoopGroup
  ) {
    self.name = name
    self.place = place
    self.gate = gate
    self.clock = clock
    var logger = logger
    logger[metadataKey: "stream"] = "\(name)"
    self.logger = logger
    self.group = group
  }

  package var reception: ReceptionStatus? { figures.status }

  /// The address that it receives at, while it runs.
  var localAddress: SocketAddress? { state.withLock { $0.channel?.localAddress } }

  package func stop(_ reason: EndReason) {
    let channel = state.withLock { state in
      state.ending = state.ending ?? reason
      return state.channel
    }
    channel?.close(promise: nil)
  }

  @discardableResult
  package func run() async -> EndReason {
    let channel: any Channel
    do {
      channel = try await open()
    } catch {
      let reason = EndReason.failed("cannot receive at \(place.text): \(error)")
      logger.error("\(reason.text)")
      return reason
    }
    logger.notice("receives MPEG-TS at \(DatagramPlace(address: channel.localAddress ?? place.address).text)")
    let isEnding = state.withLock { state in
      state.channel = channel
      return state.ending != nil
    }
    if isEnding { channel.close(promise: nil) }
    await withTaskCancellationHandler {
      try? await channel.closeFuture.get()
    } onCancel: {
      stop(.shutdown)
    }
    return ending
  }

  private var ending: EndReason { state.withLock { $0.ending } ?? .failed("the socket was closed") }

  private func open() async throws -> any Channel {
    let size = DatagramLimits.datagramBytes * DatagramLimits.datagramsAtOnce
    let isMulticast = place.address.isMulticast
    return try await DatagramBootstrap(group: group)
      .channelOption(.datagramVectorReadMessageCount, value: DatagramLimits.datagramsAtOnce)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: size))
      .channelOption(.socketOption(.so_rcvbuf), value: .init(DatagramLimits.socketBytes))
      // A group has any number of receivers on a machine.
      .channelOption(.socketOption(.so_reuseaddr), value: isMulticast ? 1 : 0)
      .channelInitializer { [self] channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(
            DatagramReceiver(name, place, gate: gate, clock: clock, logger: logger, figures: figures) { self.ending })
        }
      }
      .bind(to: place.address)
      .flatMap { [place] channel in
        guard isMulticast else { return channel.eventLoop.makeSucceededFuture(channel) }
        return channel.join(place).map { channel }.flatMapError { error in
          channel.close(promise: nil)
          return channel.eventLoop.makeFailedFuture(error)
        }
      }
      .get()
  }
}

internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// The sockets of sources that receive datagrams. Sources with the same address share one, each with a programme of its
/// own: a port can be bound once.
package final class DatagramSockets: Sendable {
  private struct Socket {
    let opening: EventLoopFuture<any Channel>
    /// Sources that use it.
    var users = 1
  }

  private struct State {
    /// By their places, without the programmes.
    var sockets: [DatagramPlace: Socket] = [:]
    /// Sockets that nobody uses any more and that still have their addresses: each fulfilled when it is closed.
    var closing: [SocketAddress: EventLoopFuture<Void>] = [:]
  }

  private let state = Mutex(State())

  package init() {}

  /// A source's use of a socket.
  struct Lease: Sendable {
    let channel: any Channel
    fileprivate let receiver: NIOLoopBound<DatagramReceiver>
    /// Fulfilled when the source gets nothing more.
    let ended: EventLoopFuture<Void>
  }

  /// Opens the socket of a place, or joins it, and gives its datagrams to a receiver.
  func join(
    _ place: DatagramPlace, on group: any EventLoopGroup, _ make: @escaping @Sendable () -> DatagramReceiver
  ) async throws -> Lease {
    let opening = state.withLock { state in
      if let known = state.sockets[place.socket] {
        state.sockets[place.socket]?.users += 1
        return known.opening
      }
      let opening = Self.open(place, on: group, after: state.closing[place.address])
      state.sockets[place.socket] = Socket(opening: opening)
      return opening
    }
    do {
      let channel = try await opening.get()
      return try await channel.eventLoop.submit {
        let receiver = make()
        let ended = channel.eventLoop.makePromise(of: Void.self)
        receiver.ended = ended
        do {
          try channel.pipeline.syncOperations.addHandler(receiver)
        } catch {
          ended.fail(error)
          throw error
        }
        return Lease(
          channel: channel, receiver: NIOLoopBound(receiver, eventLoop: channel.eventLoop), ended: ended.futureResult)
      }.get()
    } catch {
      leave(place, nil)
      throw error
    }
  }

  /// Ends a source's use. The last one closes the socket.
  func leave(_ place: DatagramPlace, _ lease: Lease?) {
    let last = state.withLock { state -> (opening: EventLoopFuture<any Channel>, closed: EventLoopPromise<Void>)? in
      guard let socket = state.sockets[place.socket] else { return nil }
      state.sockets[place.socket]?.users -= 1
      guard socket.users == 1 else { return nil }
      state.sockets[place.socket] = nil
      let closed = socket.opening.eventLoop.makePromise(of: Void.self)
      state.closing[place.address] = closed.futureResult
      return (socket.opening, closed)
    }
    if let (opening, closed) = last {
      closed.futureResult.whenComplete { [self] _ in
        state.withLock { state in
          if state.closing[place.address] == closed.futureResult { state.closing[place.address] = nil }
        }
      }
      opening.whenComplete { result in
        guard case .success(let channel) = result else { return closed.succeed() }
        channel.closeFuture.whenComplete { _ in closed.succeed() }
        channel.close(promise: nil)
      }
    } else if let lease {
      lease.channel.eventLoop.execute {
        lease.channel.pipeline.syncOperations.removeHandler(lease.receiver.value, promise: nil)
      }
    }
  }

  /// Opens a socket, once the one before it has given its address back.
  private static func open(
    _ place: DatagramPlace, on group: any EventLoopGroup, after closed: EventLoopFuture<Void>?
  ) -> EventLoopFuture<any Channel> {
    if let closed { return closed.flatMap { open(place, on: group, after: nil) } }
    let size = DatagramLimits.datagramBytes * DatagramLimits.datagramsAtOnce
    let isMulticast = place.address.isMulticast
    return DatagramBootstrap(group: group)
      .channelOption(.datagramVectorReadMessageCount, value: DatagramLimits.datagramsAtOnce)
      .channelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: size))
      .channelOption(.socketOption(.so_rcvbuf), value: .init(DatagramLimits.socketBytes))
      // A group has any number of receivers on a machine.
      .channelOption(.socketOption(.so_reuseaddr), value: isMulticast ? 1 : 0)
      .bind(to: place.address)
      .flatMap { channel in
        guard isMulticast else { return channel.eventLoop.makeSucceededFuture(channel) }
        return channel.join(place).map { channel }.flatMapError { error in
          channel.close(promise: nil)
          return channel.eventLoop.makeFailedFuture(error)
        }
      }
  }
}

extension DatagramPlace {
  /// The same for all programmes.
  fileprivate var socket: DatagramPlace {
    var place = self
    place.program = nil
    return place
  }
}

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

  /// By their places, without the programmes.
  private let sockets = Mutex<[DatagramPlace: Socket]>([:])

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
    let opening = sockets.withLock { sockets in
      if let known = sockets[place.socket] {
        sockets[place.socket]?.users += 1
        return known.opening
      }
      let opening = Self.open(place, on: group)
      sockets[place.socket] = Socket(opening: opening)
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
    let opening = sockets.withLock { sockets -> EventLoopFuture<any Channel>? in
      guard let socket = sockets[place.socket] else { return nil }
      sockets[place.socket]?.users -= 1
      guard socket.users == 1 else { return nil }
      sockets[place.socket] = nil
      return socket.opening
    }
    if let opening {
      opening.whenSuccess { $0.close(promise: nil) }
    } else if let lease {
      lease.channel.eventLoop.execute {
        lease.channel.pipeline.syncOperations.removeHandler(lease.receiver.value, promise: nil)
      }
    }
  }

  private static func open(_ place: DatagramPlace, on group: any EventLoopGroup) -> EventLoopFuture<any Channel> {
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

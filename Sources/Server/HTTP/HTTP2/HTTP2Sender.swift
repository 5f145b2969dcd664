internal import NIOCore
internal import NIOHTTP2
internal import NIOPosix
internal import Storage

/// Decides which stream of a connection sends next and how much: round and round, `turnBytes` at a time, never more than
/// the stream's window, the connection's and `socketBytes` allow. So NIO is given nothing that it would have to keep for
/// a peer, and a stream whose window stays closed holds neither memory nor the others. Confined to the channel's event
/// loop.
final class HTTP2Sender {
  /// Bytes given to NIO and not yet on the socket.
  static let socketBytes = 256 * 1024
  /// Bytes of one stream before the others have their turn.
  static let turnBytes = 64 * 1024
  /// Bytes that the kernel takes before they can be sent.
  static let unsentBytes = 128 * 1024
  /// Bytes read from disk at a time.
  static let diskBytes = 128 * 1024

  /// Called when nothing is on its way to the socket any more.
  var didDrain: (() -> Void)?
  /// Bytes given to NIO and not yet on the socket.
  private(set) var inFlight = 0
  /// While frames are being received, so that all answers to them leave in one write.
  var isHeld = false

  private let context: ChannelHandlerContext
  private let loop: LoopContext
  private let pool: NIOThreadPool
  /// Bytes that the peer lets the connection send beyond those that NIO has (RFC 9113 §6.9.2: at first 65,535).
  private var window = 65_535
  private var round = CircularBuffer<HTTP2Outbox>()
  private var starved: [HTTP2Outbox] = []
  private var progressTick = 0
  private var isPumping = false
  private var needsFlush = false

  init(context: ChannelHandlerContext, loop: LoopContext, pool: NIOThreadPool) {
    self.context = context
    self.loop = loop
    self.pool = pool
  }

  /// Whether the socket has taken nothing for `ticks`.
  func isStalled(for ticks: Int) -> Bool { inFlight > 0 && loop.now &- progressTick >= ticks }

  /// Writes a frame that no window holds back.
  func write(_ payload: HTTP2Frame.FramePayload, on id: HTTP2StreamID) {
    needsFlush = true
    context.write(NIOAny(HTTP2Frame(streamID: id, payload: payload)), promise: nil)
  }

  /// There is something to send in `outbox`.
  func schedule(_ outbox: HTTP2Outbox) {
    if outbox.turn == .none {
      outbox.turn = .waiting
      round.append(outbox)
    }
    pump()
  }

  // MARK: Windows

  /// The peer takes `count` bytes more on the connection.
  func widen(by count: Int) {
    window &+= count
    guard window > 0 else { return }
    for outbox in starved {
      outbox.turn = .waiting
      round.append(outbox)
    }
    starved.removeAll()
    pump()
  }

  /// The peer takes `count` bytes more, or fewer, on a stream.
  func widen(_ outbox: HTTP2Outbox, by count: Int) {
    outbox.window &+= count
    if outbox.window > 0, !outbox.queue.isEmpty, !outbox.isReading { schedule(outbox) }
  }

  /// The stream is over: what NIO had of it and has not put into frames does not count for the connection.
  func close(_ outbox: HTTP2Outbox) {
    let unsent = outbox.handedOver
    outbox.close()
    if unsent > 0 { widen(by: unsent) }
  }

  // MARK: Sending

  /// Sends what may be sent, and flushes what was written.
  func pump() {
    guard !isPumping, !isHeld else { return }
    isPumping = true
    defer { isPumping = false }
    repeat {
      while inFlight < Self.socketBytes, let outbox = round.popFirst() {
        outbox.turn = .none
        if !outbox.isClosed { send(from: outbox) }
      }
      guard needsFlush else { return }
      needsFlush = false
      // Flushing may complete writes at once, and then there is room for more.
      context.flush()
    } while true
  }

  private func send(from outbox: HTTP2Outbox) {
    guard !outbox.queue.isEmpty else {
      if outbox.ends { write(ByteBuffer(), of: outbox) }
      return
    }
    guard outbox.window > 0 else { return }
    guard window > 0 else {
      outbox.turn = .starved
      starved.append(outbox)
      return
    }
    if let range = outbox.queue.nextOnDisk {
      read(range, for: outbox)
      return
    }
    do {
      write(
        try outbox.queue.takeBytes(
          upTo: min(Self.turnBytes, window, outbox.window), allocator: context.channel.allocator), of: outbox)
    } catch {
      outbox.owner?.outboxDidFail("\(error)")
      return
    }
    if !outbox.queue.isEmpty {
      outbox.turn = .waiting
      round.append(outbox)
    }
  }

  private func write(_ bytes: ByteBuffer, of outbox: HTTP2Outbox) {
    let count = bytes.readableBytes
    let isLast = outbox.ends && outbox.queue.isEmpty
    if inFlight == 0 { progressTick = loop.now }
    window &-= count
    inFlight &+= count
    outbox.window &-= count
    outbox.handedOver &+= count
    needsFlush = true
    let promise = loop.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenComplete { result in
      self.inFlight &-= count
      self.progressTick = self.loop.now
      if case .success = result {
        outbox.didSend(count, at: self.loop.now)
        self.loop.traffic.add(.http2Bytes, count)
        if isLast { outbox.owner?.outboxDidDrain() }
      }
      self.pump()
      if self.inFlight == 0 { self.didDrain?() }
    }
    let data = HTTP2Frame.FramePayload.Data(data: .byteBuffer(bytes), endStream: isLast)
    context.write(NIOAny(HTTP2Frame(streamID: outbox.id, payload: .data(data))), promise: promise)
  }

  private func read(_ range: FileRange, for outbox: HTTP2Outbox) {
    outbox.isReading = true
    range.readFront(Self.diskBytes, on: pool, for: loop.eventLoop).assumeIsolated().whenComplete { result in
      outbox.isReading = false
      guard !outbox.isClosed else { return }
      if case .success(let bytes?) = result {
        outbox.queue.replaceFront(with: bytes)
        self.schedule(outbox)
      } else {
        outbox.owner?.outboxDidFail("a file cannot be read at \(range.offset)")
      }
    }
  }
}

internal import NIOCore
internal import NIOHTTP2
internal import NIOPosix
internal import Storage

/// Decides which stream of a connection sends next and how much. Streams take turns of `turnBytes`, within the windows of
/// stream and connection and within `socketBytes`. NIO thus never has to keep bytes for a client. A stream whose window stays
/// closed holds no memory and does not block other streams. Confined to the channel's event loop.
final class HTTP2Sender {
  /// The most bytes passed to NIO and not yet on the socket.
  static let socketBytes = 256 * 1024
  /// Bytes of one stream before the other streams get their turn.
  static let turnBytes = 64 * 1024
  /// The most unsent bytes in the kernel.
  static let unsentBytes = 128 * 1024
  /// Bytes of one read from disk.
  static let diskBytes = 128 * 1024

  /// Called when no more bytes are on their way to the socket.
  var didDrain: (() -> Void)?
  /// Bytes passed to NIO and not yet on the socket.
  private(set) var inFlight = 0
  /// True while frames are received, so that all responses to them are sent in one write.
  var isHeld = false

  private let context: ChannelHandlerContext
  private let loop: LoopContext
  private let pool: NIOThreadPool
  /// Bytes that the client allows on the connection beyond those that NIO holds (RFC 9113 §6.9.2: initially 65,535).
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

  /// Writes a frame that is not subject to flow control.
  func write(_ payload: HTTP2Frame.FramePayload, on id: HTTP2StreamID) {
    needsFlush = true
    context.write(NIOAny(HTTP2Frame(streamID: id, payload: payload)), promise: nil)
  }

  /// `outbox` has bytes to send.
  func schedule(_ outbox: HTTP2Outbox) {
    if outbox.turn == .none {
      outbox.turn = .waiting
      round.append(outbox)
    }
    pump()
  }

  // MARK: Windows

  /// The client extends the window of the connection by `count` bytes.
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

  /// The client changes the window of a stream by `count` bytes.
  func widen(_ outbox: HTTP2Outbox, by count: Int) {
    outbox.window &+= count
    if outbox.window > 0, !outbox.queue.isEmpty, !outbox.isReading { schedule(outbox) }
  }

  /// The stream has ended: bytes that NIO holds and has not put into frames do not count for the connection.
  func close(_ outbox: HTTP2Outbox) {
    let unsent = outbox.handedOver
    outbox.close()
    if unsent > 0 { widen(by: unsent) }
  }

  // MARK: Sending

  /// Sends what the windows allow, and flushes.
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
      // Flushing may complete writes at once, which makes room for more.
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

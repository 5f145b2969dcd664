internal import NIOCore
internal import NIOPosix
internal import Storage

/// Sends pieces in order on one HTTP/1.1 connection, with as little memory as possible.
///
/// Over plain TCP it writes to the socket itself. Large ranges of memory files are sent with `sendfile`. All pieces before and
/// between them are sent with one `sendmsg` (MSG_MORE while more follows), which takes small ranges from the mapped file. When
/// the socket is full, the next `wakeBytes` go to NIO; their completion shows that the socket takes bytes again. Over TLS,
/// and without a socket, everything goes through NIO in buffers. Files on disk are read on a thread pool.
///
/// Memory per viewer beside the kernel's socket buffer: none for memory files over TCP, which are shared and not copied (2000
/// viewers that read nothing took 4.4 KiB each); `tlsWindow` over TLS; `diskChunk` of a file on disk. Confined to the
/// channel's event loop.
final class SocketWriter {
  /// Bytes passed to NIO when the socket is full. A stalled client must take this much to count as active.
  static let wakeBytes = 16 * 1024
  /// The most bytes passed to TLS that are not on the socket yet.
  static let tlsWindow = 256 * 1024
  /// Bytes of one TLS write.
  static let tlsChunk = 128 * 1024
  /// Bytes of one read from disk.
  static let diskChunk = 256 * 1024
  /// Bytes sent before other connections of the loop get their turn.
  static let turnBytes = 8 << 20

  /// The most unsent bytes of an endless body in the kernel.
  static let liveUnsentBytes = 256 * 1024
  /// The most unsent bytes of any body in the kernel, when memory is tight.
  static let tightUnsentBytes = 128 * 1024

  enum Outcome {
    /// All bytes are on the socket.
    case sent
    /// The delegate is called when the rest is on the socket.
    case waiting
    /// The connection is unusable.
    case failed
  }

  /// Called only for sends that returned `waiting`.
  protocol Delegate: AnyObject {
    func writerDidDrain()
    func writerDidFail(_ reason: String)
  }

  weak var delegate: (any Delegate)?
  /// Bytes accepted and not yet on the socket.
  private(set) var backlog = 0
  /// The tick in which the client last took bytes, or in which the wait for it began.
  private(set) var progressTick = 0

  private let context: ChannelHandlerContext
  private let channel: any Channel
  /// Nil over TLS.
  private let socket: PlainSocket?
  private let loop: LoopContext
  private let pool: NIOThreadPool
  private var queue = PieceQueue()
  private var inFlight = 0
  /// The file of bytes that NIO holds.
  private var fileInFlight: SharedFile?
  private var isReading = false
  private var isPumping = false
  private var isYielding = false
  private var failure: String?

  init(context: ChannelHandlerContext, socket: PlainSocket?, loop: LoopContext, pool: NIOThreadPool) {
    self.context = context
    channel = context.channel
    self.socket = socket
    self.loop = loop
    self.pool = pool
  }

  /// Whether the client, not a disk, has delayed `backlog` for `ticks`.
  func isStalled(for ticks: Int) -> Bool {
    backlog > 0 && !isReading && loop.now &- progressTick >= ticks
  }

  /// It sends a segment whose memory is needed.
  var isCalledIn: Bool { queue.isCalledIn || fileInFlight?.isCalledIn ?? false }

  /// Sends a whole response.
  func send(_ bytes: ByteBuffer) -> Outcome {
    var bytes = bytes
    if let socket, queue.isEmpty, inFlight == 0, failure == nil, channel.isActive {
      let sent = socket.send(bytes)
      if sent > 0 { loop.traffic.add(.http1Bytes, sent) }
      if sent == bytes.readableBytes { return .sent }
      if sent > 0 { bytes.moveReaderIndex(forwardBy: sent) }
    }
    return send([.bytes(bytes)])
  }

  /// Sends pieces after those that are queued already.
  func send(_ pieces: some Sequence<BodyPiece>) -> Outcome {
    if backlog == 0 { progressTick = loop.now }
    for piece in pieces where piece.length > 0 {
      backlog &+= piece.length
      queue.append(piece)
    }
    return pump()
  }

  /// The channel has closed: nothing more is sent or reported.
  func close() {
    failure = failure ?? "closed"
    delegate = nil
    queue.removeAll()
    backlog = 0
  }

  /// Makes the close discard the bytes of a client that does not read.
  func resetOnClose() {
    if channel.isActive { socket?.resetOnClose() }
  }

  /// Whether the kernel still holds bytes that the client has not taken.
  var kernelHoldsBytes: Bool { channel.isActive && socket?.holdsBytes ?? false }

  /// Limits the unsent bytes in the kernel. Without a limit, the kernel buffers megabytes of an endless body, which are late
  /// before they are sent. Whole segments have no limit: more frequent waiting costs a quarter to a half more CPU for 1 MB over
  /// loopback.
  func limitUnsent(to bytes: Int) {
    if channel.isActive { socket?.limitUnsent(bytes) }
  }

  private func pump() -> Outcome {
    // Called by a completion within the loop below, which continues by itself.
    guard !isPumping else { return .waiting }
    isPumping = true
    defer { isPumping = false }
    var turn = 0
    var wroteToChannel: Bool
    repeat {
      wroteToChannel = false
      while failure == nil, let piece = queue.first {
        guard channel.isActive else {
          failure = "the connection is closed"
          break
        }
        guard turn < Self.turnBytes else {
          yieldTurn()
          break
        }
        if case .file(let range) = piece, range.file.kind == .disk {
          guard inFlight == 0, !isReading else { break }
          read(range)
          break
        }
        if let socket {
          guard inFlight == 0 else { break }
          turn &+= sendDirectly(on: socket)
        } else {
          guard inFlight < Self.tlsWindow else { break }
          turn &+= sendThroughChannel()
          wroteToChannel = true
        }
      }
      // Flushing may complete writes at once, which makes room for more.
      if wroteToChannel { context.flush() }
    } while wroteToChannel
    if failure != nil { return .failed }
    return backlog == 0 ? .sent : .waiting
  }

  /// Continues after an event outside of `pump`.
  private func resume() {
    guard !isPumping else { return }
    switch pump() {
    case .sent: delegate?.writerDidDrain()
    case .waiting: break
    case .failed: delegate?.writerDidFail(failure ?? "")
    }
  }

  private func yieldTurn() {
    guard !isYielding else { return }
    isYielding = true
    loop.eventLoop.assumeIsolated().execute {
      self.isYielding = false
      self.resume()
    }
  }

  // MARK: Plain TCP

  /// Sends from the front of the queue directly. Returns the bytes that the socket took.
  private func sendDirectly(on socket: PlainSocket) -> Int {
    switch socket.send(queue, limit: Self.turnBytes) {
    case .sent(let sent, let wanted):
      consume(sent)
      if sent < wanted { waitForSocket() }
      return sent
    case .full: waitForSocket()
    case .failed(let reason): failure = reason
    }
    return 0
  }

  /// Passes a few bytes to NIO, which waits for the socket.
  private func waitForSocket() {
    guard failure == nil, let piece = queue.first else { return }
    let wake = piece.prefix(min(piece.length, Self.wakeBytes))
    take(wake.length)
    let promise = loop.eventLoop.makePromise(of: Void.self)
    switch wake {
    case .bytes(let bytes):
      completion(of: promise, count: wake.length)
      context.writeAndFlush(NIOAny(IOData.byteBuffer(bytes)), promise: promise)
    case .file(let range):
      // A separate handle for the same descriptor: a handle that two loops share fails with EBUSY. The range keeps the
      // descriptor open until NIO is done.
      let handle = NIOFileHandle(_deprecatedTakingOwnershipOfDescriptor: range.file.descriptor)
      fileInFlight = range.file
      completion(of: promise, count: wake.length) { [file = range.file] in
        _ = try? handle.takeDescriptorOwnership()
        self.fileInFlight = nil
        withExtendedLifetime(file) {}
      }
      let region = FileRegion(
        fileHandle: handle, readerIndex: range.position, endIndex: range.position &+ range.length)
      context.writeAndFlush(NIOAny(IOData.fileRegion(region)), promise: promise)
    }
  }

  // MARK: Through the channel

  /// Passes the next bytes of the queue to NIO. Returns their number.
  private func sendThroughChannel() -> Int {
    let bytes: ByteBuffer
    do {
      bytes = try queue.takeBytes(upTo: Self.tlsChunk, allocator: channel.allocator)
    } catch {
      failure = "\(error)"
      return 0
    }
    let count = bytes.readableBytes
    inFlight &+= count
    let promise = loop.eventLoop.makePromise(of: Void.self)
    completion(of: promise, count: count)
    context.write(NIOAny(bytes), promise: promise)
    return count
  }

  private func read(_ range: FileRange) {
    isReading = true
    range.readFront(Self.diskChunk, on: pool, for: loop.eventLoop).assumeIsolated().whenComplete { result in
      self.isReading = false
      self.progressTick = self.loop.now
      guard self.failure == nil else { return }
      if case .success(let bytes?) = result {
        self.queue.replaceFront(with: bytes)
      } else {
        self.failure = "a file cannot be read at \(range.offset)"
      }
      self.resume()
    }
  }

  // MARK: Accounting

  /// Removes `count` bytes, which are on the socket, from the front of the queue.
  private func consume(_ count: Int) {
    backlog &-= count
    queue.drop(count)
    guard count > 0 else { return }
    progressTick = loop.now
    loop.traffic.add(.http1Bytes, count)
  }

  /// Removes `count` bytes, which NIO holds now, from the front of the queue.
  private func take(_ count: Int) {
    inFlight &+= count
    queue.drop(count)
  }

  private func completion(
    of promise: EventLoopPromise<Void>, count: Int, _ release: @escaping () -> Void = {}
  ) {
    promise.futureResult.assumeIsolated().whenComplete { result in
      release()
      self.inFlight &-= count
      guard self.failure == nil else { return }
      switch result {
      case .success:
        self.backlog &-= count
        self.progressTick = self.loop.now
        self.loop.traffic.add(.http1Bytes, count)
      case .failure(let error): self.failure = "\(error)"
      }
      self.resume()
    }
  }
}

internal import Base
internal import NIOCore
internal import NIOPosix
internal import Storage

/// Sends pieces in order on one HTTP/1.1 connection, with as little memory as possible.
///
/// Over plain TCP it writes to the socket itself. Large ranges of memory files are sent with `sendfile`. All pieces before and
/// between them are sent with one `sendmsg` (MSG_MORE while more follows), which takes small ranges from the mapped file. When
/// the socket is full, the next `wakeBytes` go to NIO; their completion shows that the socket takes bytes again. Files on disk
/// are sent with `sendfile`, too, on a thread that may wait for the disk. Over TLS, and without a socket, everything goes through
/// NIO in buffers; files whose bytes may move are read into buffers, too.
///
/// Memory per viewer beside the kernel's socket buffer: none for files over TCP, which are shared and not copied (2000
/// viewers that read nothing took 4.4 KiB each), but `diskWakeBytes` of a file on disk while the socket is full. Buffers come
/// from `SendingPools.memory`, which all connections share: `tlsWindow` at most. What was made for this client alone counts in
/// `SendingPools.responses`. Confined to the channel's event loop.
final class SocketWriter {
  /// Bytes passed to NIO when the socket is full. A stalled client must take this much to count as active.
  static let wakeBytes = 16 * 1024
  /// The most bytes passed to TLS that are not on the socket yet.
  static let tlsWindow = 256 * 1024
  /// Bytes of one TLS write.
  static let tlsChunk = 128 * 1024
  /// The most bytes of one read from disk, and of one `sendfile` from there.
  static let diskChunk = 256 * 1024
  static let diskTurn = 1 << 20
  /// The same as `wakeBytes` for a file on disk: those bytes are read.
  static let diskWakeBytes = 4 * 1024
  /// Bytes sent before other connections of the loop get their turn.
  static let turnBytes = 8 << 20

  /// The most unsent bytes in the kernel, over TLS, and when memory is tight.
  static let secureUnsentBytes = 128 * 1024
  static let tightUnsentBytes = 128 * 1024
  /// Bytes of a response in memory that needs no limit.
  private static let smallBytes = 16 * 1024
  /// Ticks without progress after which a client has shown that it takes nothing.
  static let stalledTicks = 2

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
  private let pools: SendingPools
  private let address: String
  /// Nil as long as nothing was taken of them: most responses need none.
  private var disk: FairPool.Member?
  private var memory: FairPool.Member?
  private var responses: FairPool.Member?
  /// Bytes of `responses` for the response that is sent, and how many the client takes until they are gone.
  private var (claimed, claimedUntil) = (0, 0)
  private var queue = PieceQueue()
  private var inFlight = 0
  /// Bytes that the client took since `progressTick`.
  private var taken = 0
  /// Bytes of `memory` for what is read, or written to the channel, next; or those that were read and wait for the socket.
  private var room = 0
  private var roomIsUsed = false
  private var isAwaitingRoom = false
  /// The file of bytes that NIO holds.
  private var fileInFlight: SharedFile?
  private var isReading = false
  private var readingSince = 0
  private var isPumping = false
  private var isYielding = false
  private var failure: String?
  /// Nil as long as no limit is set, which small responses do not need.
  private var unsent: UnsentAllowance?
  private let isTight: () -> Bool

  /// `address` is the client's, for its share of the pools. `isTight` tells whether little memory is left.
  init(
    context: ChannelHandlerContext, socket: PlainSocket?, loop: LoopContext, pools: SendingPools, address: String,
    isTight: @escaping () -> Bool
  ) {
    self.isTight = isTight
    self.context = context
    channel = context.channel
    self.socket = socket
    self.loop = loop
    self.pools = pools
    self.address = address
  }

  /// Whether the client, not a disk or other connections, has delayed `backlog` for `ticks`.
  func isStalled(for ticks: Int) -> Bool {
    backlog > 0 && (inFlight > 0 || !isReading && !isAwaitingRoom) && loop.now &- progressTick >= ticks
  }

  /// Why the connection must end: others need the memory of what it sends. Nil if it need not.
  var calledIn: String? {
    if queue.isCalledIn || fileInFlight?.isCalledIn ?? false { return LeftoverBudget.reason }
    let isCalledIn = memory?.isCalledIn == true || responses?.isCalledIn == true
    return isCalledIn && !isReading ? SendingPools.reason : nil
  }

  /// Claims memory for what a body has of its own, behind so many bytes of a head. False if there is too little. To be called
  /// before it is sent, when nothing else is.
  func claim(_ own: (bytes: Int, end: Int), behind head: Int) -> Bool {
    guard own.bytes > Self.smallBytes else { return true }
    let responses = responses ?? pools.responses.member(of: address)
    self.responses = responses
    let count = min(own.bytes, pools.responseLimit)
    guard responses.claim(count) else { return false }
    (claimed, claimedUntil) = (count, head &+ own.end)
    return true
  }

  /// Sends a whole response.
  func send(_ bytes: ByteBuffer) -> Outcome {
    var bytes = bytes
    if bytes.readableBytes > Self.smallBytes { limitUnsent() }
    if let socket, queue.isEmpty, inFlight == 0, failure == nil, channel.isActive {
      let sent = socket.send(bytes)
      if sent > 0 { took(sent) }
      if sent == bytes.readableBytes { return .sent }
      if sent > 0 { bytes.moveReaderIndex(forwardBy: sent) }
    }
    return send([.bytes(bytes)])
  }

  /// Sends pieces after those that are queued already.
  func send(_ pieces: some Sequence<BodyPiece>) -> Outcome {
    if backlog == 0 { (progressTick, taken) = (loop.now, 0) }
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
    // What the channel and threads hold comes back when they are done.
    memory?.stop()
    disk?.stop()
    responses = nil
  }

  /// Makes the close discard the bytes of a client that does not read.
  func resetOnClose() {
    if channel.isActive { socket?.resetOnClose() }
  }

  /// Whether the kernel still holds bytes that the client has not taken.
  var kernelHoldsBytes: Bool { channel.isActive && socket?.holdsBytes ?? false }

  /// Limits the unsent bytes in the kernel from now on.
  func limitUnsent() {
    guard unsent == nil, let socket, channel.isActive else { return }
    let unsent = UnsentAllowance()
    self.unsent = unsent
    socket.limitUnsent(unsent.bytes)
  }

  /// Call at each tick while something is sent.
  func tick() {
    guard inFlight > 0, loop.now &- progressTick >= Self.stalledTicks, unsent?.stalled() == true else { return }
    setUnsent()
  }

  /// The client took bytes. A few are no progress.
  private func took(_ count: Int) {
    taken &+= count
    if taken >= Self.wakeBytes || backlog == 0 { (progressTick, taken) = (loop.now, 0) }
    loop.traffic.add(.http1Bytes, count)
    if claimed > 0 { tookClaimed(count) }
    guard unsent != nil else { return }
    let most = isTight() ? Self.tightUnsentBytes : UnsentAllowance.most
    if unsent?.took(count, at: loop.now, limit: most) == true { setUnsent() }
  }

  private func tookClaimed(_ count: Int) {
    claimedUntil &-= count
    responses?.progress(count)
    guard claimedUntil <= 0 else { return }
    responses?.giveBack(claimed)
    claimed = 0
  }

  private func setUnsent() {
    if let unsent, channel.isActive { socket?.limitUnsent(unsent.bytes) }
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
          if let socket, range.file.isFixed { takeTurn { self.send(range, on: socket) } } else { read(range) }
          break
        }
        if let socket {
          guard inFlight == 0 else { break }
          turn &+= sendDirectly(on: socket)
        } else {
          guard inFlight < Self.tlsWindow, hasRoom(for: min(backlog &- inFlight, Self.tlsChunk)) else { break }
          turn &+= sendThroughChannel()
          wroteToChannel = true
        }
      }
      // Flushing may complete writes at once, which makes room for more.
      if wroteToChannel { context.flush() }
    } while wroteToChannel
    if queue.isEmpty, inFlight == 0 { giveBackRoom() }
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
      bytes = try queue.takeBytes(upTo: min(room, Self.tlsChunk), allocator: channel.allocator)
    } catch {
      failure = "\(error)"
      return 0
    }
    let count = bytes.readableBytes
    inFlight &+= count
    room &-= count
    let promise = loop.eventLoop.makePromise(of: Void.self)
    completion(of: promise, count: count) { self.memory?.giveBack(count) }
    context.write(NIOAny(bytes), promise: promise)
    return count
  }

  // MARK: Memory

  /// Whether there is room for some of the next `bytes`. If not, it goes on when there is.
  private func hasRoom(for bytes: Int) -> Bool {
    if room > 0 { return true }
    guard !isAwaitingRoom else { return false }
    isAwaitingRoom = true
    let memory = memory ?? pools.memory.member(of: address)
    self.memory = memory
    guard let count = memory.take(bytes, on: loop.eventLoop, orLater: { self.didGetRoom($0) }) else { return false }
    isAwaitingRoom = false
    room = count
    return true
  }

  private func didGetRoom(_ count: Int) {
    isAwaitingRoom = false
    room &+= count
    progressTick = loop.now
    resume()
  }

  private func giveBackRoom() {
    memory?.giveBack(room)
    room = 0
    roomIsUsed = false
  }

  // MARK: Files on disk

  private func read(_ range: FileRange) {
    // What was read before is sent.
    if roomIsUsed { giveBackRoom() }
    guard hasRoom(for: min(range.length, Self.diskChunk)) else { return }
    takeTurn { self.startReading(range) }
  }

  private func startReading(_ range: FileRange) {
    range.readFront(room, on: pools.threads, for: loop.eventLoop).assumeIsolated().whenComplete { result in
      self.endTurn()
      guard self.failure == nil else { return }
      if case .success(let bytes?) = result {
        self.queue.replaceFront(with: bytes)
        self.roomIsUsed = self.socket != nil
      } else {
        self.failure = "a file cannot be read at \(range.offset)"
      }
      self.resume()
    }
  }

  /// Calls `use` when it is the connection's turn at the disk.
  private func takeTurn(_ use: @escaping () -> Void) {
    isReading = true
    readingSince = loop.now
    let disk = disk ?? pools.disk.member(of: address)
    self.disk = disk
    if disk.take(1, on: loop.eventLoop, orLater: { _ in use() }) != nil { use() }
  }

  /// The time of the turn, and of the wait for it, is not the client's.
  private func endTurn() {
    disk?.giveBack(1)
    isReading = false
    if loop.now &- readingSince >= Self.stalledTicks { memory?.restart() }
    progressTick &+= loop.now &- readingSince
  }

  /// On a thread, which may wait for the disk. A descriptor of its own stays valid if the connection closes meanwhile.
  private func send(_ range: FileRange, on socket: PlainSocket) {
    guard failure == nil, channel.isActive, let copy = socket.duplicate() else {
      endTurn()
      // Without a descriptor it is read.
      return failure == nil && channel.isActive ? read(range) : resume()
    }
    let sending = pools.threads.runIfActive(eventLoop: loop.eventLoop) {
      copy.send(range, limit: Self.diskTurn, wake: Self.diskWakeBytes)
    }
    sending.assumeIsolated().whenComplete { result in
      copy.close()
      self.endTurn()
      guard self.failure == nil else { return }
      switch result {
      case .success(.sent(let count, let wake)):
        self.consume(count)
        if wake.readableBytes > 0 {
          self.queue.replaceFront(with: wake)
          self.waitForSocket()
        }
      case .success(.failed(let reason)): self.failure = reason
      case .failure(let error): self.failure = "\(error)"
      }
      self.resume()
    }
  }

  // MARK: Accounting

  /// Removes `count` bytes, which are on the socket, from the front of the queue.
  private func consume(_ count: Int) {
    backlog &-= count
    queue.drop(count)
    if count > 0 { took(count) }
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
        self.took(count)
      case .failure(let error): self.failure = "\(error)"
      }
      self.resume()
    }
  }
}

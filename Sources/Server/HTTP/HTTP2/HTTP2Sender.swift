internal import Base
internal import NIOCore
internal import Storage

/// Decides which stream of a connection sends next and how much. Streams take turns of `turnBytes`, within the windows of
/// stream and connection and within `socketBytes`. A stream whose window stays closed holds no memory and does not block other
/// streams. Bytes of bodies are read and framed only in memory of `SendingPools`, which all connections share, and those of files on
/// disk are read for one stream at a time. All frames of a turn of the event loop go to the socket in one write. Confined to the channel's event loop.
final class HTTP2Sender {
  /// The most bytes of bodies passed to the channel and not yet on the socket.
  static let socketBytes = 256 * 1024
  /// The most bytes of other frames that wait for the socket. A client that goes on sending without reading is disconnected there,
  /// or beyond `freeBytes` where it gets no memory.
  static let waitingBytes = 1 << 20
  static let freeBytes = 32 * 1024
  /// Bytes of one stream before the other streams get their turn.
  static let turnBytes = 64 * 1024
  /// The most bytes of one read from disk.
  static let diskBytes = 128 * 1024
  /// A response of its own of fewer bytes claims no memory. The one that says that there is too little has fewer.
  static let leastClaim = 1024
  /// The most unsent bytes in the kernel.
  static let unsentBytes = 128 * 1024
  /// What one write has of the bodies.
  private struct Share {
    let outbox: HTTP2Outbox
    let count: Int
    let isLast: Bool
  }

  /// Called when no more bytes are on their way to the socket.
  var didDrain: (() -> Void)?
  /// Bytes of frames that are not yet on the socket.
  private(set) var inFlight = 0
  /// True while frames are received, so that all responses to them are sent in one write.
  var isHeld = false
  /// Frames that are not subject to flow control are written here.
  var frames = HTTP2FrameWriter()
  /// WINDOW_UPDATE frames that the bodies written since the last `takeAllowance` account for.
  private var allowance = 0
  /// Bytes of bodies that are too few, so far, to account for any.
  private var unaccounted = 0

  private let context: ChannelHandlerContext
  private let loop: LoopContext
  private let pools: SendingPools
  private let address: String
  private let memory: FairPool.Member
  /// Nil as long as nothing was read, or claimed.
  private var disk: FairPool.Member?
  private var responses: FairPool.Member?
  /// The stream for which a file is read, until what was read is in frames; and those that wait for their turn.
  private var reader: HTTP2Outbox?
  private var nextReaders: [HTTP2Outbox] = []
  /// The tick in which `reader` began to wait for the disk.
  private var readingSince = 0
  /// Bytes of `memory` for what is framed next, and those for frames without bodies.
  private var room = 0
  private var frameRoom = 0
  private var isAwaitingRoom = false
  /// Bytes that the client allows on the connection (RFC 9113 §6.9.2: initially 65,535).
  private var window = HTTP2Receiver.window
  private var round = CircularBuffer<HTTP2Outbox>(initialCapacity: 1)
  private var starved: [HTTP2Outbox] = []
  /// Of the frames that are not with the channel yet.
  private var shares: [Share] = []
  private var bodyBytes = 0
  /// Bytes of bodies that the channel has.
  private var bodiesInFlight = 0
  private var progressTick = 0
  private var isPumping = false
  private var needsFlush = false

  /// `address` is the client's, for its share of the pools.
  init(context: ChannelHandlerContext, loop: LoopContext, pools: SendingPools, address: String) {
    self.context = context
    self.loop = loop
    self.pools = pools
    self.address = address
    memory = pools.memory.member(of: address)
  }

  /// Whether the socket has taken nothing for `ticks`.
  func isStalled(for ticks: Int) -> Bool { inFlight > 0 && loop.now &- progressTick >= ticks }

  /// Whether more waits than a client may leave unread.
  func isOverfull() -> Bool {
    let waiting = inFlight &+ frames.count &- bodiesInFlight &- bodyBytes
    guard waiting > Self.freeBytes &+ frameRoom else { return false }
    guard waiting <= Self.waitingBytes, memory.takeNow(Self.freeBytes) else { return true }
    frameRoom &+= Self.freeBytes
    return false
  }

  /// Others need the memory of what it sends, and no disk delays it.
  var isCalledIn: Bool { (memory.isCalledIn || responses?.isCalledIn == true) && reader?.isReading != true }

  /// `outbox` has bytes to send.
  func schedule(_ outbox: HTTP2Outbox) {
    if outbox.turn == .none {
      outbox.turn = .waiting
      round.append(outbox)
    }
    pump()
  }

  // MARK: Windows

  /// The client extends the window of the connection by `count` bytes. False when it is then too large (RFC 9113 §6.9.1).
  func widen(by count: Int) -> Bool {
    guard window &+ count <= Int(Int32.max) else { return false }
    window &+= count
    guard window > 0, !starved.isEmpty else { return true }
    for outbox in starved {
      outbox.turn = .waiting
      round.append(outbox)
    }
    starved.removeAll()
    pump()
    return true
  }

  /// The client changes the window of a stream by `count` bytes. False when it is then too large.
  func widen(_ outbox: HTTP2Outbox, by count: Int) -> Bool {
    guard outbox.window &+ count <= Int(Int32.max) else { return false }
    outbox.window &+= count
    if outbox.window > 0, !outbox.queue.isEmpty, !outbox.isReading { schedule(outbox) }
    return true
  }

  // MARK: Sending

  /// Writes a whole response at once, and ends the stream with it, if that delays no other stream and fits into all windows.
  /// `window` is the client's for the stream.
  func sendWhole(_ response: HTTP2Response, on stream: UInt32, window streamWindow: Int) -> Bool {
    let length = response.length
    guard round.isEmpty, starved.isEmpty, length <= min(window, streamWindow, Self.turnBytes),
      inFlight &+ frames.count &+ length < Self.socketBytes, response.isInMemory,
      length == 0 || memory.takeNow(length)
    else { return false }
    frames.reserve(
      response.head.readableBytes &+ length &+ (2 &+ length / HTTP2FrameHead.longestPayload) &* HTTP2FrameHead.size)
    guard length > 0 else {
      frames.headers(response.head, stream: stream, isEnd: true)
      return true
    }
    frames.headers(response.head, stream: stream, isEnd: false)
    do throws(PieceQueue.BrokenFile) {
      try frames.data(response.whole, length: length, stream: stream)
    } catch {
      memory.giveBack(length)
      frames.reset(stream, .internalError)
      return true
    }
    didWrite(length)
    return true
  }

  /// Bytes of a body are in frames.
  private func didWrite(_ count: Int) {
    window &-= count
    bodyBytes &+= count
    unaccounted &+= count
    guard unaccounted >= HTTP2Receiver.leastAccounted else { return }
    allowance &+= HTTP2Receiver.allowed(for: unaccounted)
    unaccounted = 0
  }

  func takeAllowance() -> Int {
    defer { allowance = 0 }
    return allowance
  }

  /// A stream is over that may have bytes to send.
  func drop(_ outbox: HTTP2Outbox) {
    if outbox.turn == .starved { starved.removeAll { $0 === outbox } }
    if reader === outbox, !outbox.isReading { endReading() }
    giveBackClaim(of: outbox)
  }

  /// The channel has closed. What it and threads hold comes back when they are done.
  func close() {
    memory.stop()
    disk?.stop()
    responses = nil
  }

  // MARK: Memory

  /// Claims memory for what a body has of its own, which waits for the windows of the client. False if there is too little.
  func claim(_ own: (bytes: Int, end: Int), for outbox: HTTP2Outbox) -> Bool {
    guard own.bytes >= Self.leastClaim else { return true }
    let responses = responses ?? pools.responses.member(of: address)
    self.responses = responses
    let count = min(own.bytes, pools.responseLimit)
    guard responses.claim(count) else { return false }
    (outbox.claimed, outbox.claimedUntil) = (count, own.end)
    return true
  }

  private func giveBackClaim(of outbox: HTTP2Outbox) {
    guard outbox.claimed > 0 else { return }
    responses?.giveBack(outbox.claimed)
    outbox.claimed = 0
  }

  /// The bytes that may be read or framed of the next `wanted`. Nil if there are none: then it goes on when there are.
  private func takeRoom(_ wanted: Int) -> Int? {
    if room == 0 {
      guard !isAwaitingRoom else { return nil }
      isAwaitingRoom = true
      guard let count = memory.take(wanted, on: loop.eventLoop, orLater: { self.didGetRoom($0) }) else { return nil }
      isAwaitingRoom = false
      room = count
    }
    let count = min(wanted, room)
    room &-= count
    return count
  }

  private func didGetRoom(_ count: Int) {
    isAwaitingRoom = false
    room &+= count
    pump()
  }

  /// Sends what the windows allow, and flushes.
  func pump() {
    guard !isPumping, !isHeld else { return }
    isPumping = true
    defer { isPumping = false }
    repeat {
      while inFlight &+ frames.count < Self.socketBytes, !isAwaitingRoom, let outbox = round.popFirst() {
        outbox.turn = .none
        if !outbox.isClosed { send(from: outbox) }
        if frames.count >= Self.turnBytes { passOn() }
      }
      passOn()
      if round.isEmpty, room > 0 {
        memory.giveBack(room)
        room = 0
      }
      guard needsFlush else { return }
      needsFlush = false
      // Flushing may complete writes at once, which makes room for more.
      context.flush()
    } while true
  }

  private func send(from outbox: HTTP2Outbox) {
    guard !outbox.queue.isEmpty else {
      if outbox.ends { write(0, of: outbox, isLast: true) }
      return
    }
    guard outbox.window > 0 else { return }
    guard window > 0 else {
      outbox.turn = .starved
      starved.append(outbox)
      return
    }
    let most = min(Self.turnBytes, window, outbox.window)
    if let range = outbox.queue.nextOnDisk {
      // What was read before is in frames.
      if reader === outbox { endReading() }
      return read(range, for: outbox)
    }
    var (count, isAll) = outbox.queue.bytesInMemory(upTo: most)
    if outbox.room == 0 {
      guard let room = takeRoom(count) else { return wait(outbox) }
      outbox.room = room
    }
    if count > outbox.room { (count, isAll) = (outbox.room, false) }
    outbox.room &-= count
    if reader === outbox, outbox.room == 0 { endReading() }
    guard write(count, of: outbox, isLast: isAll && outbox.ends), !outbox.queue.isEmpty else { return }
    outbox.turn = .waiting
    round.append(outbox)
  }

  /// There is no memory for it now.
  private func wait(_ outbox: HTTP2Outbox) {
    outbox.turn = .waiting
    round.prepend(outbox)
  }

  /// Puts bytes of a stream into frames. False when they cannot be read.
  @discardableResult
  private func write(_ count: Int, of outbox: HTTP2Outbox, isLast: Bool) -> Bool {
    var left = count
    frames.reserve(count &+ (1 &+ count / HTTP2FrameHead.longestPayload) &* HTTP2FrameHead.size)
    repeat {
      let length = min(left, HTTP2FrameHead.longestPayload)
      left &-= length
      do throws(PieceQueue.BrokenFile) {
        try frames.data(from: &outbox.queue, length, stream: outbox.id, isEnd: isLast && left == 0)
      } catch {
        memory.giveBack(length &+ left)
        outbox.owner?.outboxDidFail("\(error)")
        return false
      }
      outbox.window &-= length
      didWrite(length)
    } while left > 0
    if outbox.claimed > 0 {
      responses?.progress(count)
      outbox.claimedUntil &-= count
      if outbox.claimedUntil <= 0 { giveBackClaim(of: outbox) }
    }
    shares.append(Share(outbox: outbox, count: count, isLast: isLast))
    if isLast { outbox.owner?.outboxDidEnd() }
    return true
  }

  /// Passes the frames to the channel.
  private func passOn() {
    let count = frames.count
    guard count > 0 else { return }
    if inFlight == 0 { progressTick = loop.now }
    inFlight &+= count
    needsFlush = true
    let (shares, bodyBytes) = (self.shares, self.bodyBytes)
    (self.shares, self.bodyBytes) = ([], 0)
    bodiesInFlight &+= bodyBytes
    let promise = loop.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenComplete { result in
      self.inFlight &-= count
      self.bodiesInFlight &-= bodyBytes
      self.memory.giveBack(bodyBytes)
      if self.inFlight == 0 {
        self.memory.giveBack(self.frameRoom)
        self.frameRoom = 0
      }
      self.progressTick = self.loop.now
      if case .success = result {
        if bodyBytes > 0 { self.loop.traffic.add(.http2Bytes, bodyBytes) }
        for share in shares {
          share.outbox.didSend(share.count, at: self.loop.now)
          if share.isLast { share.outbox.owner?.outboxDidDrain() }
        }
      }
      self.pump()
      if self.isIdle { self.didDrain?() }
    }
    context.write(NIOAny(frames.takeBytes()), promise: promise)
  }

  /// All frames are on the socket.
  var isIdle: Bool { inFlight == 0 && frames.count == 0 }

  // MARK: Files on disk

  /// Reads no more than the windows take now.
  private func read(_ range: FileRange, for outbox: HTTP2Outbox) {
    guard reader == nil else {
      outbox.turn = .waitsToRead
      nextReaders.append(outbox)
      return
    }
    guard let count = takeRoom(min(range.length, Self.diskBytes, window, outbox.window)) else { return wait(outbox) }
    outbox.room = count
    outbox.isReading = true
    readingSince = loop.now
    reader = outbox
    let disk = disk ?? pools.disk.member(of: address)
    self.disk = disk
    if disk.take(1, on: loop.eventLoop, orLater: { _ in self.readNow(range, for: outbox) }) != nil {
      readNow(range, for: outbox)
    }
  }

  private func readNow(_ range: FileRange, for outbox: HTTP2Outbox) {
    range.readFront(outbox.room, on: pools.threads, for: loop.eventLoop).assumeIsolated().whenComplete { result in
      self.disk?.giveBack(1)
      outbox.isReading = false
      if self.loop.now &- self.readingSince >= SocketWriter.stalledTicks { self.memory.restart() }
      guard !outbox.isClosed else {
        self.endReading()
        return self.pump()
      }
      if case .success(let bytes?) = result {
        outbox.queue.replaceFront(with: bytes)
        self.schedule(outbox)
      } else {
        outbox.owner?.outboxDidFail("a file cannot be read at \(range.offset)")
      }
    }
  }

  /// What was read is in frames, or nobody wants it any more. The others try again.
  private func endReading() {
    memory.giveBack(reader?.room ?? 0)
    reader?.room = 0
    reader = nil
    for next in nextReaders where !next.isClosed {
      next.turn = .waiting
      round.append(next)
    }
    nextReaders.removeAll(keepingCapacity: true)
  }
}

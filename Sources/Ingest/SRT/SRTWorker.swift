internal import Base
internal import CProcess
internal import CSRT
internal import Glibc
internal import MPEGTS
internal import NIOCore
internal import Publishing
internal import Synchronization

/// The worker: libsrt in a process of its own. It takes callers at the UDP socket that it was given, decides about those
/// that the table decides about, and hands the others' media to the server. One thread calls libsrt; another one reads
/// what the server says. libsrt's own threads call the hook.
///
/// It has no memory of media beside libsrt's buffers: it reads a connection only while the server has given it credit.
package final class SRTWorker: Sendable {
  /// A caller that is connected, or is about to be.
  private struct Connection {
    var hasCredit = false
    var credit = 0
    var isReading = false
    /// It has ended, and what it left waits for credit.
    var isBroken = false
    /// The number of the last packet.
    var last: Int32?
  }

  private let descriptor: Int32
  private let admission = SRTAdmission()
  private let inbox = Mutex<(requests: [SRTRequest], isOver: Bool)>(([], false))
  private let udp: Int32

  /// - Parameters:
  ///   - descriptor: a connected stream socket to the server.
  ///   - udp: a bound UDP socket.
  package init(descriptor: Int32, udp: Int32) { (self.descriptor, self.udp) = (descriptor, udp) }

  /// Runs the worker as a process. Its socket is its standard input.
  package static func runAsProcess() -> Never {
    weir_share_heaps()
    WorkerConfinement.apply(
      .datagrams, addressSpace: SRTLimits.addressSpace, openFiles: SRTLimits.openFiles, niceness: 0)
    SRTWorker(descriptor: STDIN_FILENO, udp: WorkerLauncher.passedDescriptor).run()
    // Without the destructors of libsrt, which wait for its threads.
    _exit(0)
  }

  /// Returns when the server has closed the socket or has broken the protocol.
  package func run() {
    // Its log would go to standard error.
    srt_setloghandler(nil) { _, _, _, _, _, _ in }
    guard srt_startup() >= 0 else { return }
    do {
      try DedicatedThread.start(named: "weir-srt-read") { [self] in readRequests() }
      var turn = try Turn(self)
      while !inbox.withLock({ $0.isOver }), turn.run() {}
      turn.end()
    } catch {
      _ = send(SRTWire.encode(.failed("\(error)")))
    }
  }

  private func readRequests() {
    var reader = SRTMessageReader(limit: SRTLimits.tableBytes)
    var bytes = [UInt8](repeating: 0, count: 65_536)
    reading: while true {
      let count = recv(descriptor, &bytes, bytes.count, 0)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      reader.append(ByteBuffer(bytes: bytes[..<count]))
      do {
        while let (type, body) = try reader.next() {
          let request = try SRTWire.request(type, body)
          inbox.withLock { $0.requests.append(request) }
        }
      } catch {
        break reading
      }
    }
    inbox.withLock { $0.isOver = true }
  }

  /// Sends everything, and blocks while the server does not read. False if the server is gone.
  private func send(_ bytes: ByteBuffer) -> Bool {
    bytes.withUnsafeReadableBytes { bytes in
      var done = 0
      while done < bytes.count {
        let count = Glibc.send(
          descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done, Int32(MSG_NOSIGNAL))
        if count < 0, errno == EINTR { continue }
        guard count > 0 else { return false }
        done += count
      }
      return true
    }
  }

  /// Packets that are missing between two, whose numbers have 31 bits.
  static func missing(between last: Int32, and next: Int32) -> UInt32 {
    let distance = UInt32(bitPattern: next &- last &- 1) & 0x7FFF_FFFF
    return distance < 0x4000_0000 ? distance : 0
  }

  /// What the thread that calls libsrt has.
  private struct Turn {
    let worker: SRTWorker
    let poll: Int32
    var listener: SRTSocket?
    /// A call that is not connected yet.
    var call: (socket: SRTSocket, call: SRTCall)?
    var connections: [Int32: Connection] = [:]
    var out = ByteBuffer()
    var hasMedia = false
    var hasBegun = false
    var nextFigures = MonotonicTime.now()
    var leftovers = SRTLeftovers()
    let packet = UnsafeMutableRawBufferPointer.allocate(byteCount: SRTLimits.payloadBytes, alignment: 16)
    var events = [SRT_EPOLL_EVENT](repeating: SRT_EPOLL_EVENT(), count: 64)

    init(_ worker: SRTWorker) throws {
      self.worker = worker
      poll = srt_epoll_create()
      guard poll >= 0 else { throw SRTSocket.Failure("make a poll") }
      // Without sockets it waits all the same.
      _ = srt_epoll_set(poll, Int32(SRT_EPOLL_ENABLE_EMPTY.rawValue))
    }

    /// False if the work is over.
    mutating func run() -> Bool {
      for request in worker.inbox.withLock({ inbox in
        defer { inbox.requests = [] }
        return inbox.requests
      }) {
        do { try handle(request) } catch {
          _ = worker.send(SRTWire.encode(.failed("\(error)")))
          return false
        }
      }
      // libsrt looks every 10 ms itself.
      let count = srt_epoll_uwait(poll, &events, Int32(events.count), 10)
      for event in events.prefix(Int(max(0, count))) { handle(event) }
      let now = MonotonicTime.now()
      for reply in worker.admission.take(now: now) { write(reply) }
      if now >= nextFigures {
        nextFigures = now &+ 1_000_000_000
        for id in connections.keys {
          if let figures = SRTSocket(id: id).figures { write(.figures(id, figures)) }
        }
      }
      if leftovers.areDue(now: now) { weir_trim_heap() }
      guard out.readableBytes == 0 || worker.send(out) else { return false }
      out.clear(minimumCapacity: 0)
      if hasMedia {
        var pause = timespec(tv_sec: 0, tv_nsec: Int(SRTLimits.turn))
        nanosleep(&pause, nil)
      }
      hasMedia = false
      return !hasBegun || call != nil || listener != nil || !connections.isEmpty
    }

    /// Tells all callers that it ends.
    mutating func end() {
      listener?.close()
      call?.socket.close()
      for id in connections.keys { SRTSocket(id: id).close() }
      packet.deallocate()
    }

    private mutating func write(_ reply: SRTReply) { out.writeImmutableBuffer(SRTWire.encode(reply)) }

    // MARK: requests

    private mutating func handle(_ request: SRTRequest) throws {
      switch request {
      case .table(let table):
        worker.admission.use(table)
        if listener == nil { try listen() }
      case .call(let to): try begin(to)
      case .credit(let id, let bytes):
        guard var connection = connections[id] else { return }
        if !connection.hasCredit { worker.admission.admitted(id) }
        connection.hasCredit = true
        connection.credit = min(connection.credit &+ Int(bytes), 4 * SRTLimits.credit)
        connections[id] = connection
        watch(id)
      case .close(let id): finish(id, nil)
      }
    }

    private mutating func listen() throws {
      let socket = try SRTSocket()
      try socket.take(worker.udp)
      let opaque = Unmanaged.passUnretained(worker.admission).toOpaque()
      guard
        srt_listen_callback(
          socket.id,
          { opaque, caller, _, address, streamID in
            guard let opaque else { return -1 }
            return Unmanaged<SRTAdmission>.fromOpaque(opaque).takeUnretainedValue().answer(caller, address, streamID)
          }, opaque) == 0, srt_listen(socket.id, Int32(SRTLimits.backlog)) == 0
      else { throw SRTSocket.Failure("listen") }
      (listener, hasBegun) = (socket, true)
      poll(socket.id, SRT_EPOLL_IN.rawValue | SRT_EPOLL_ERR.rawValue)
      write(.listening)
    }

    private mutating func begin(_ to: SRTCall) throws {
      let socket = try SRTSocket()
      try socket.set(SRTO_LATENCY, Int32(to.latency))
      try socket.set(SRTO_STREAMID, to.streamID)
      if let phrase = to.passphrase { try socket.set(SRTO_PASSPHRASE, phrase.text) }
      try socket.take(worker.udp)
      guard let address = try? SocketAddress(ipAddress: to.address, port: Int(to.port)) else {
        throw SRTProtocolError(description: "a call without an address")
      }
      let code = address.withSockAddr { address, size in srt_connect(socket.id, address, Int32(size)) }
      guard code == 0 else { throw SRTSocket.Failure("call \(to.address) port \(to.port)") }
      (call, hasBegun) = ((socket, to), true)
      poll(socket.id, SRT_EPOLL_OUT.rawValue | SRT_EPOLL_ERR.rawValue)
    }

    // MARK: events

    private func poll(_ id: Int32, _ events: UInt32) {
      var events = Int32(bitPattern: events)
      if srt_epoll_update_usock(poll, id, &events) != 0 { _ = srt_epoll_add_usock(poll, id, &events) }
    }

    private mutating func handle(_ event: SRT_EPOLL_EVENT) {
      if event.fd == listener?.id {
        while accept() {}
      } else if event.fd == call?.socket.id {
        connected()
      } else if let connection = connections[event.fd] {
        if connection.credit > 0 {
          read(event.fd)
        } else if connection.hasCredit {
          connections[event.fd]?.isBroken = true
          _ = srt_epoll_remove_usock(poll, event.fd)
        } else {
          finish(event.fd, "the caller left before it was admitted")
        }
      }
    }

    private mutating func accept() -> Bool {
      guard let listener else { return false }
      let id = srt_accept(listener.id, nil, nil)
      guard id >= 0 else { return false }
      guard let caller = worker.admission.connected(id) else {
        SRTSocket(id: id).close()
        return true
      }
      begin(id, caller.id, caller.peer)
      return true
    }

    private mutating func connected() {
      guard let (socket, to) = call else { return }
      call = nil
      guard srt_getsockstate(socket.id) == SRTS_CONNECTED else {
        let reason = String(cString: srt_rejectreason_str(srt_getrejectreason(socket.id)))
        write(.closed(socket.id, "the call to \(to.address) port \(to.port) failed: \(reason)"))
        socket.close()
        return
      }
      begin(socket.id, nil, SRTPeer(address: to.address, port: to.port, host: to.address))
    }

    private mutating func begin(_ id: Int32, _ wanted: SRTStreamID?, _ peer: SRTPeer) {
      let socket = SRTSocket(id: id)
      connections[id] = Connection()
      poll(id, SRT_EPOLL_ERR.rawValue)
      write(
        .arrived(
          SRTArrival(
            connection: id, address: peer.address, port: peer.port, stream: wanted?.stream.description ?? "",
            key: wanted?.key ?? "",
            latency: UInt16(clamping: socket.number(SRTO_RCVLATENCY)),
            version: UInt32(bitPattern: socket.number(SRTO_PEERVERSION)),
            isEncrypted: socket.number(SRTO_RCVKMSTATE) == SRT_KM_S_SECURED.rawValue,
            programs: wanted?.programs ?? .first)))
    }

    /// Asks for the events that the connection's credit allows.
    private mutating func watch(_ id: Int32) {
      guard let connection = connections[id], connection.isReading != (connection.credit > 0) || connection.isBroken
      else { return }
      connections[id]?.isReading = connection.credit > 0
      let reading = connection.credit > 0 ? SRT_EPOLL_IN.rawValue : 0
      poll(id, reading | SRT_EPOLL_ERR.rawValue)
    }

    private mutating func read(_ id: Int32) {
      guard var connection = connections[id] else { return }
      let socket = SRTSocket(id: id)
      var left = min(connection.credit, SRTLimits.turnBytes)
      let before = left
      var pending = ByteBuffer()
      var lost: UInt32 = 0
      var hasEnded = false
      receiving: while left > 0 {
        switch socket.receive(into: packet) {
        case .nothing: break receiving
        case .ended:
          hasEnded = true
          break receiving
        case .packet(let count, let number):
          let missing = connection.last.map { SRTWorker.missing(between: $0, and: number) } ?? 0
          connection.last = number
          if missing > 0 {
            tell(id, lost, &pending)
            lost = missing
          }
          if pending.capacity == 0 { pending.reserveCapacity(SRTLimits.turnBytes + SRTLimits.payloadBytes) }
          pending.writeBytes(UnsafeRawBufferPointer(rebasing: packet[..<count]))
          left -= count
        }
      }
      tell(id, lost, &pending)
      connection.credit -= before - left
      connections[id] = connection
      if hasEnded {
        finish(id, "the caller closed the connection, or was not heard for 5 s")
      } else {
        watch(id)
      }
    }

    private mutating func tell(_ id: Int32, _ lost: UInt32, _ pending: inout ByteBuffer) {
      guard pending.readableBytes > 0 else { return }
      hasMedia = true
      write(.media(id, lost: lost, pending))
      pending.clear()
    }

    /// Ends a connection; `reason` is for the server, unless that ends it itself.
    private mutating func finish(_ id: Int32, _ reason: String?) {
      guard connections.removeValue(forKey: id) != nil else { return }
      _ = srt_epoll_remove_usock(poll, id)
      SRTSocket(id: id).close()
      worker.admission.left(id)
      leftovers.add(now: .now())
      if let reason { write(.closed(id, reason)) }
    }
  }
}

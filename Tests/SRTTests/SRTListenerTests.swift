@testable import Base
import FMP4
import Glibc
import IngestSupport
import NIOCore
import NIOPosix
import Publishing
@testable import SRT
import Support
import Synchronization
import Testing

/// A listener whose workers are played by the test: they say what a worker says, or what one says that was taken over.
@Suite(.timeLimit(.minutes(1))) struct SRTListenerTests {
  /// The test's ends of the sockets of workers that were started.
  private final class Workers: Sendable {
    private let ends = Mutex<[Int32]>([])
    private let closed = Mutex(0)

    var launcher: WorkerLauncher {
      WorkerLauncher { () throws(WorkerFailure) in
        var pair: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &pair) == 0 else {
          throw WorkerFailure("socketpair", errno)
        }
        let own = pair[0]
        self.ends.withLock { $0.append(pair[1]) }
        return RunningWorker(socket: own, processID: nil) {
          close(own)
          return "it was told to"
        }
      }
    }

    var count: Int { ends.withLock { $0.count } }

    /// The worker that is started as this one, from 0.
    func worker(_ number: Int) async throws -> Worker {
      for _ in 0..<1000 where count <= number { try await Task.sleep(for: .milliseconds(10)) }
      return Worker(socket: try #require(ends.withLock { number < $0.count ? $0[number] : nil }))
    }

    /// Closes the test's ends, each once.
    func closeAll() {
      let all = ends.withLock { $0 }
      closed.withLock { closed in
        for socket in all[closed...] { close(socket) }
        closed = all.count
      }
    }
  }

  /// A worker, and what it was asked for.
  private final class Worker {
    private let socket: Int32
    private var reader = SRTMessageReader(limit: SRTLimits.tableBytes)
    private(set) var requests: [SRTRequest] = []
    private(set) var isEnded = false

    init(socket: Int32) { self.socket = socket }

    func say(_ reply: SRTReply) { say(SRTWire.encode(reply)) }

    func say(_ bytes: ByteBuffer) {
      let bytes = Array(bytes.readableBytesView)
      var done = 0
      while done < bytes.count {
        let count = send(socket, Array(bytes[done...]), bytes.count - done, Int32(MSG_NOSIGNAL))
        guard count > 0 else { return }
        done += count
      }
    }

    /// Reads requests until one is as wanted, or the server has closed its end.
    func hears(_ isWanted: (SRTRequest) -> Bool = { _ in false }) async throws -> Bool {
      var bytes = [UInt8](repeating: 0, count: 65_536)
      for _ in 0..<1000 {
        let count = recv(socket, &bytes, bytes.count, Int32(MSG_DONTWAIT))
        if count > 0 {
          reader.append(ByteBuffer(bytes: bytes.prefix(count)))
          while let (type, body) = try reader.next() { requests.append(try SRTWire.request(type, body)) }
        }
        if count == 0 { isEnded = true }
        if requests.contains(where: isWanted) { return true }
        if isEnded { return false }
        try await Task.sleep(for: .milliseconds(10))
      }
      return false
    }

    /// Waits until the server has closed its end.
    func isLeft() async throws -> Bool {
      _ = try await hears()
      return isEnded
    }
  }

  private func listening(
    _ gate: RecordingGate = RecordingGate(), log: LogCollector = LogCollector(), calls: [[UInt8]] = [Self.handshake],
    rest: Int64 = SRTLimits.rest, _ body: (SRTListener, Workers) async throws -> Void
  ) async throws {
    let workers = Workers()
    let listener = SRTListener(
      gate: gate, clock: .system(), logger: log.logger, group: MultiThreadedEventLoopGroup.singleton, rest: rest,
      launch: { _ in workers.launcher }
    ) {
      var table = SRTTable()
      table.busy = ["cam": "192.0.2.1"]
      return table
    }
    let address = try await listener.start(.address(try SocketAddress(ipAddress: "127.0.0.1", port: 0)), tls: nil)
    for datagram in calls { try call(address, datagram) }
    do { try await body(listener, workers) } catch {
      workers.closeAll()
      await listener.stop()
      throw error
    }
    workers.closeAll()
    await listener.stop()
  }

  /// What a caller begins with.
  private static let handshake: [UInt8] = [0x80] + [UInt8](repeating: 0, count: 63)

  private func call(_ address: SocketAddress, _ datagram: [UInt8]) throws {
    let udp = try UDPSocket.bind(try SocketAddress(ipAddress: "127.0.0.1", port: 0))
    defer { close(udp) }
    let sent = address.withSockAddr { sendto(udp, datagram, datagram.count, 0, $0, socklen_t($1)) }
    #expect(sent == datagram.count)
  }

  @Test func `There is no worker before the first caller, nor is one needed to stop`() async throws {
    // Nothing, data, a handshake that is cut short, and a control packet of another type.
    let others: [[UInt8]] = [[], [0] + Self.handshake, Array(Self.handshake.dropLast()), [0x80, 1] + Self.handshake]
    try await listening(calls: others) { _, workers in
      try await Task.sleep(for: .milliseconds(100))
      #expect(workers.count == 0)
    }
    try await listening(calls: others + [Self.handshake]) { _, workers in _ = try await workers.worker(0) }
  }

  /// The datagram of the call stays in the socket here, so that the next worker is started at once.
  @Test func `A worker that nobody calls ends, and one with a connection does not`() async throws {
    let log = LogCollector()
    try await listening(log: log, rest: 300_000_000) { _, workers in
      let busy = try await workers.worker(0)
      busy.say(caller(7))
      #expect(try await busy.hears(isCredit))
      try await Task.sleep(for: .milliseconds(700))
      #expect(workers.count == 1)
      busy.say(.closed(7, "it left"))
      #expect(try await busy.isLeft())
      _ = try await workers.worker(1)
      // At the end this worker's socket may be closed before the listener stops.
      #expect(!log.lines.contains { $0.contains("is lost") }, "\(log.lines)")
    }
  }

  private func caller(_ connection: Int32, _ stream: String = "cam", key: String = "") -> SRTReply {
    .arrived(
      SRTArrival(
        connection: connection, address: "192.0.2.7", port: 999, stream: stream, key: key, latency: 120,
        version: 0x010502, isEncrypted: false))
  }

  private func until(_ condition: () -> Bool) async throws -> Bool {
    for _ in 0..<1000 where !condition() { try await Task.sleep(for: .milliseconds(10)) }
    return condition()
  }

  private func isCredit(_ request: SRTRequest) -> Bool { if case .credit = request { true } else { false } }

  @Test func `A caller is admitted, gets credit, and is published until it leaves`() async throws {
    let gate = RecordingGate(key: "right")
    try await listening(gate) { _, workers in
      let worker = try await workers.worker(0)
      #expect(try await worker.hears { if case .table(let table) = $0 { table.busy["cam"] != nil } else { false } })
      worker.say(.listening)
      worker.say(caller(7, key: "right"))
      #expect(try await worker.hears { $0 == .credit(7, bytes: UInt32(SRTLimits.credit)) })
      for datagram in TransportScript.datagrams() { worker.say(.media(7, lost: 0, datagram)) }
      #expect(try await until { gate.sinks.first?.samples.count ?? 0 >= 99 })
      worker.say(.closed(7, "it left"))
      #expect(try await until { gate.sinks.first?.ending == .connectionLost("it left") })
      #expect(gate.sinks.first?.samples.count == 100)
      #expect(try await worker.hears { $0 == .close(7) })
    }
    let request = try #require(gate.sinks.first?.request)
    #expect(request.protocolName == "SRT" && request.remoteAddress == "192.0.2.7:999" && request.host == "192.0.2.7")
    #expect(request.software == "SRT 1.5.2" && request.origin == .peer)
  }

  @Test func `What was taken is credited again, a quarter at a time`() async throws {
    try await listening { _, workers in
      let worker = try await workers.worker(0)
      worker.say(caller(7))
      #expect(try await worker.hears(isCredit))
      let piece = ByteBuffer(bytes: TransportScript.datagrams(frames: 700).flatMap { Array($0.readableBytesView) })
      try #require(piece.readableBytes >= SRTLimits.credit / 4)
      // A byte less than a quarter is not credited, and with one more all of it is.
      worker.say(.media(7, lost: 0, try #require(piece.getSlice(at: 0, length: SRTLimits.credit / 4 - 1))))
      worker.say(.media(7, lost: 0, try #require(piece.getSlice(at: SRTLimits.credit / 4 - 1, length: 1))))
      #expect(try await worker.hears { $0 == .credit(7, bytes: UInt32(SRTLimits.credit / 4)) })
      #expect(worker.requests.filter(isCredit).count == 2)
    }
  }

  /// As many lines as a publisher may cause, and one at the end.
  @Test func `Packets that are missing are told to the last one, in few lines`() async throws {
    let log = LogCollector()
    let datagrams = TransportScript.datagrams()
    try await listening(log: log) { _, workers in
      let worker = try await workers.worker(0)
      worker.say(caller(7))
      #expect(try await worker.hears(isCredit))
      for datagram in datagrams { worker.say(.media(7, lost: 3, datagram)) }
      worker.say(.closed(7, "it left"))
      #expect(try await worker.hears { $0 == .close(7) })
    }
    let told = log.lines.filter { $0.contains("packets came too late and are missing") }.compactMap { line -> Int? in
      let words = line.split(separator: " ")
      return words.firstIndex(of: "packets").flatMap { $0 > 0 ? Int(words[$0 - 1]) : nil }
    }
    #expect(datagrams.count > LogThrottle.burst + 1)
    #expect(told.reduce(0, +) == 3 * datagrams.count && told.count == LogThrottle.burst + 1, "\(told)")
  }

  @Test func `Who is refused is closed, without credit`() async throws {
    let gate = RecordingGate(key: "right")
    try await listening(gate) { _, workers in
      let worker = try await workers.worker(0)
      worker.say(caller(7, key: "wrong"))
      #expect(try await worker.hears { $0 == .close(7) })
      for datagram in TransportScript.datagrams() { worker.say(.media(7, lost: 0, datagram)) }
      worker.say(caller(8, key: "right"))
      #expect(try await worker.hears { $0 == .credit(8, bytes: UInt32(SRTLimits.credit)) })
      #expect(gate.sinks.count == 1 && gate.sinks[0].samples.isEmpty && worker.requests.filter(isCredit).count == 1)
    }
  }

  @Test func `A name that is none, and a number that is taken, are closed`() async throws {
    let gate = RecordingGate()
    try await listening(gate) { _, workers in
      let worker = try await workers.worker(0)
      worker.say(caller(7, "../etc"))
      #expect(try await worker.hears { $0 == .close(7) })
      worker.say(caller(8))
      #expect(try await worker.hears { $0 == .credit(8, bytes: UInt32(SRTLimits.credit)) })
      worker.say(caller(8, "other"))
      #expect(try await worker.hears { $0 == .close(8) })
      #expect(gate.sinks.map { "\($0.request.stream)" } == ["cam"])
      // Of a connection that nobody knows nothing is taken.
      worker.say(.media(99, lost: 0, ByteBuffer(repeating: 0x47, count: 188)))
      worker.say(.closed(99, "never there"))
      worker.say(caller(9, "third"))
      #expect(try await worker.hears { $0 == .credit(9, bytes: UInt32(SRTLimits.credit)) })
    }
  }

  @Test(arguments: [[0, 0, 0, 1, 99], [0, 0, 0, 0], [0xFF, 0xFF, 0xFF, 0xFF], [0, 0, 0, 2, 67, 1]] as [[UInt8]])
  func `A worker that breaks the protocol is ended with its publications, and another one begins`(
    bytes: [UInt8]
  ) async throws {
    let (gate, log) = (RecordingGate(), LogCollector())
    try await listening(gate, log: log) { _, workers in
      let worker = try await workers.worker(0)
      worker.say(caller(7))
      #expect(try await worker.hears(isCredit))
      worker.say(ByteBuffer(bytes: bytes))
      #expect(try await worker.isLeft())
      #expect(try await until { gate.sinks.first?.ending == .connectionLost("the SRT worker ended") })
      let next = try await workers.worker(1)
      next.say(caller(7))
      #expect(try await next.hears(isCredit))
    }
    #expect(log.lines.contains { $0.hasPrefix("error: ") && $0.contains("it broke the protocol") })
  }

  @Test func `A refusal of the worker is told in one printable line`() async throws {
    let log = LogCollector()
    try await listening(log: log) { listener, workers in
      let worker = try await workers.worker(0)
      worker.say(
        .rejected(
          SRTRefusal(
            address: "192.0.2.7", port: 9, stream: "cam", code: 1401, reason: "no\nsuch \u{1B}[31mkey",
            streamID: "cam\n***")))
      #expect(try await until { log.lines.contains { $0.contains("(SRT 1401)") } })
    }
    let line = try #require(log.lines.first { $0.contains("(SRT 1401)") })
    #expect(!line.contains("\n") && !line.contains("\u{1B}") && line.contains("cam"))
    #expect(line.contains("(SRT 1401); the stream ID was cam?***"))
  }

  @Test func `A stop ends the publications and the worker, and starts no other`() async throws {
    let gate = RecordingGate()
    try await listening(gate) { listener, workers in
      let worker = try await workers.worker(0)
      worker.say(caller(7))
      #expect(try await worker.hears(isCredit))
      async let stopped: Void = listener.stop()
      #expect(try await worker.hears { $0 == .close(7) })
      #expect(try await worker.isLeft())
      workers.closeAll()
      await stopped
      #expect(gate.sinks.first?.ending == .shutdown && workers.count == 1)
    }
  }
}

import Base
import FMP4
import IngestSupport
import MPEGTS
import NIOCore
import NIOPosix
import Publishing
import Support
import Synchronization
import Testing

/// Transport streams that come as bodies of requests.
@Suite(.timeLimit(.minutes(1))) struct TransportUploadTests {
  /// What the request is told.
  private final class Said: Sendable {
    private let state = Mutex<[String]>([])
    var all: [String] { state.withLock { $0 } }
    func add(_ text: String) { state.withLock { $0.append(text) } }

    func until(_ text: String) async throws -> Bool {
      for _ in 0..<1000 where !all.contains(text) { try await Task.sleep(for: .milliseconds(10)) }
      return all.contains(text)
    }
  }

  private final class Owner: TransportUploadOwner {
    let said = Said()
    func uploadIsAdmitted() { said.add("admitted") }
    func uploadIsSilent() { said.add("silent") }
    func uploadIsPaused(_ isPaused: Bool) { said.add(isPaused ? "paused" : "goes on") }
    func uploadIsRefused(_ refusal: TransportUpload.Refusal) {
      switch refusal {
      case .gate(let refusal): said.add("refused by the gate: \(refusal.code)")
      case .tooManyWaiting: said.add("too many wait")
      case .unusable(let reason): said.add("unusable: \(reason)")
      case .ended(let reason): said.add("ended: \(reason)")
      }
    }
  }

  /// An upload with its owner, on their loop.
  private struct Upload: Sendable {
    let bound: NIOLoopBound<(owner: Owner, upload: TransportUpload?)>
    let loop: any EventLoop
    let said: Said

    func run(_ body: @escaping @Sendable (TransportUpload) -> Void) async throws {
      try await loop.submit { [bound] in if let upload = bound.value.upload { body(upload) } }.get()
    }

    func send(_ bytes: [UInt8], pieces size: Int) async throws {
      try await run { upload in
        for start in stride(from: 0, to: bytes.count, by: size) {
          upload.receive(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
        }
      }
    }
  }

  /// Holds the uploads, as a server of requests does until they are over. One that nobody holds cannot end.
  private final class Kept: Sendable {
    private let uploads = Mutex<[Upload]>([])
    func add(_ upload: Upload) { uploads.withLock { $0.append(upload) } }
  }

  private let kept = Kept()

  private func begin(
    _ ingest: TransportIngest, key: String? = nil, from host: String = "192.0.2.7", name: String = "cam"
  ) async throws -> Upload {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let stream = try #require(StreamName(name))
    let address = try SocketAddress(ipAddress: host, port: 999)
    let (bound, said) = try await loop.submit {
      let owner = Owner()
      let upload = ingest.begin(
        stream, key: key.map { Secret($0) },
        of: TransportIngest.Client(protocolName: "HTTPS", address: address, client: nil, software: "curl\u{7}/8"),
        owner: owner, on: loop)
      return (NIOLoopBound((owner: owner, upload: upload), eventLoop: loop), owner.said)
    }.get()
    let upload = Upload(bound: bound, loop: loop, said: said)
    kept.add(upload)
    return upload
  }

  private func ingest(
    _ gate: any PublishGate, _ configuration: TransportIngest.Configuration = TransportIngest.Configuration()
  ) -> TransportIngest {
    TransportIngest(gate: gate, clock: .system(), logger: .silent, configuration: configuration)
  }

  private static func bytes(frames: Int) -> [UInt8] {
    TransportScript.datagrams(frames: frames).flatMap { Array($0.readableBytesView) }
  }

  @Test(arguments: [1, 77, 188, 100_000]) func `A body is published, in pieces of any size`(size: Int) async throws {
    let gate = RecordingGate(key: "right")
    let ingest = ingest(gate)
    let upload = try await begin(ingest, key: "right")
    #expect(try await upload.said.until("admitted"))
    try await upload.send(Self.bytes(frames: 100), pieces: size)
    try await upload.run { $0.finish() }
    let sink = try #require(gate.sinks.first)
    #expect(sink.samples.count == 100 && sink.ending == .finished && gate.sinks.count == 1)
    #expect(Set(zip(sink.samples, sink.samples.dropFirst()).map { $1.decodeTime - $0.decodeTime }) == [1024])
    #expect(sink.request.protocolName == "HTTPS" && sink.request.host == "192.0.2.7" && sink.request.origin == .peer)
    #expect(!sink.request.software.contains("\u{7}") && upload.said.all == ["admitted"])
    await ingest.stop()
  }

  @Test func `Who is refused is told why, and its bytes count for nothing`() async throws {
    let gate = RecordingGate(key: "right")
    let ingest = ingest(gate)
    let upload = try await begin(ingest, key: "wrong")
    #expect(try await upload.said.until("refused by the gate: unauthorized"))
    try await upload.send(Self.bytes(frames: 20), pieces: 1000)
    try await upload.run { $0.finish() }
    #expect(gate.sinks.isEmpty && upload.said.all.count == 1)
    await ingest.stop()
  }

  @Test func `A body of which nothing is published is answered with what was found in it`() async throws {
    let gate = RecordingGate()
    let ingest = ingest(gate)
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(1, pid: 100)]))
    script.add(table: 100, TransportScript.map(1, [(0x02, 256, [])]))
    script.add(256, TransportScript.pes(0xE0, 90_000, [0, 0, 1, 0xB3]))
    let cases: [([UInt8], String)] = [
      (script.bytes, "nothing of the stream can be published: MPEG-2 video (PID 256) is not taken"),
      ([], "no programme of an MPEG transport stream: 0 packets, 0 other bytes"),
      ([UInt8](repeating: 7, count: 1000), "no programme of an MPEG transport stream: 0 packets, 1000 other bytes"),
    ]
    for (number, (bytes, reason)) in cases.enumerated() {
      let upload = try await begin(ingest)
      #expect(try await upload.said.until("admitted"))
      try await upload.send(bytes, pieces: 1000)
      try await upload.run { $0.finish() }
      #expect(upload.said.all.last?.hasPrefix("unusable: \(reason)") == true, "\(upload.said.all)")
      guard case .failed(let told)? = gate.sinks.last?.ending else {
        Issue.record("it has not failed")
        continue
      }
      #expect(told.hasPrefix(reason) && gate.sinks.count == number + 1)
    }
    await ingest.stop()
  }

  @Test func `Of a connection that is lost the complete frames count, and the stream waits`() async throws {
    let gate = RecordingGate()
    let ingest = ingest(gate)
    let upload = try await begin(ingest)
    #expect(try await upload.said.until("admitted"))
    try await upload.send(Array(Self.bytes(frames: 100).dropLast(100)), pieces: 1000)
    try await upload.run { $0.abandon("reset") }
    let sink = try #require(gate.sinks.first)
    #expect(sink.samples.count == 99 && sink.ending == .connectionLost("reset"))
    await ingest.stop()
  }

  @Test func `Media that comes much faster than it plays is paused, and goes on`() async throws {
    let gate = RecordingGate()
    let ingest = ingest(gate)
    let upload = try await begin(ingest)
    #expect(try await upload.said.until("admitted"))
    let bytes = Self.bytes(frames: 22_000)
    try await upload.send(bytes, pieces: bytes.count)
    #expect(try await upload.said.until("paused"))
    #expect(try await upload.said.until("goes on"))
    try await upload.run { $0.finish() }
    #expect(gate.sinks.first?.samples.count == 22_000, "a pause asks for patience, and drops nothing")
    await ingest.stop()
  }

  private static let shutdown = "ended: \(EndReason.shutdown.text)"

  /// A gate that answers when it is told.
  private final class Waiting: PublishGate {
    let isOpen = Mutex(false)
    func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
      while !isOpen.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(10)) }
      throw .shuttingDown
    }
  }

  @Test func `Uploads of an address that wait for the gate are bounded`() async throws {
    let gate = Waiting()
    var configuration = TransportIngest.Configuration()
    configuration.peerLimits.unauthenticatedPerAddress = 2
    let ingest = ingest(gate, configuration)
    let waiting = [try await begin(ingest), try await begin(ingest)]
    let more = try await begin(ingest)
    #expect(more.said.all == ["too many wait"])
    let other = try await begin(ingest, from: "192.0.2.8")
    #expect(other.said.all.isEmpty && waiting.allSatisfy { $0.said.all.isEmpty })
    gate.isOpen.withLock { $0 = true }
    for upload in waiting + [other] {
      #expect(try await upload.said.until("refused by the gate: \(PublishRefusal.shuttingDown.code)"))
    }
    gate.isOpen.withLock { $0 = false }
    let again = try await begin(ingest)
    #expect(again.said.all.isEmpty, "there is a place again")
    // It waits for the gate. A stop does not wait for that.
    await ingest.stop()
    #expect(try await again.said.until(Self.shutdown) && again.said.all.count == 1)
    gate.isOpen.withLock { $0 = true }
  }

  @Test func `A stop ends uploads, and no other begins`() async throws {
    let gate = RecordingGate()
    let ingest = ingest(gate)
    let upload = try await begin(ingest)
    #expect(try await upload.said.until("admitted"))
    await ingest.stop()
    // The upload is over first, and its client is told in the same moment.
    #expect(try await upload.said.until(Self.shutdown) && upload.said.all == ["admitted", Self.shutdown])
    #expect(gate.sinks.first?.ending == .shutdown)
    let late = try await begin(ingest)
    #expect(late.said.all == ["too many wait"])
  }
}

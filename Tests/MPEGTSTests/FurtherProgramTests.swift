import Base
import FMP4
import IngestSupport
@testable import MPEGTS
import NIOCore
import NIOPosix
import Publishing
import Support
import Testing

/// Several programmes of a transport stream, each as a publication.
@Suite(.timeLimit(.minutes(1))) struct FurtherProgramTests {
  private typealias Numbered = (number: UInt16, map: UInt16, audio: UInt16)

  /// Programmes with a track of audio each; the tables come with each twentieth frame, the maps in the order of `maps`.
  private static func script(
    _ programs: [Numbered], maps: [Int]? = nil, frames: Int = 40, version: UInt8 = 0, from start: Int = 0,
    into script: inout TransportScript
  ) {
    for frame in 0..<frames {
      if frame % 20 == 0 {
        script.add(table: 0, TransportScript.association(version: version, programs.map { ($0.number, pid: $0.map) }))
        for index in maps ?? Array(programs.indices) {
          let program = programs[index]
          script.add(
            table: program.map,
            TransportScript.map(program.number, clock: program.audio, [(type: 0x0F, pid: program.audio, more: [])]))
        }
      }
      let time = UInt64(90_000 + (start + frame) * 1920)
      for program in programs {
        let content = [UInt8](repeating: UInt8(program.number & 255), count: 50)
        script.add(program.audio, TransportScript.pes(0xC0, time, TransportScript.adts(content)))
      }
    }
  }

  private static let three: [Numbered] = [(1, 32, 256), (7, 33, 257), (9, 34, 258)]

  /// The payloads' first bytes of the main publication and of the others.
  private func taken(_ bytes: [UInt8], _ choice: ProgramChoice) throws -> [UInt16: [UInt8]] {
    var publication = TransportPublication(reading: ClockReading(wall: 0, monotonic: 0), choice)
    var (found, actions): ([UInt16: [UInt8]], [PublicationAction]) = ([:], [])
    for start in stride(from: 0, to: bytes.count, by: 1000) {
      try publication.receive(ByteBuffer(bytes: bytes[start..<min(start + 1000, bytes.count)]), now: 0, to: &actions)
      for further in publication.takeFurther() { found[further.program, default: []] += further.actions.contents }
    }
    try publication.finish(now: 0, to: &actions)
    for further in publication.takeFurther() { found[further.program, default: []] += further.actions.contents }
    found[0] = actions.contents
    return found
  }

  @Test(arguments: [[0, 1, 2], [2, 1, 0], [1, 2, 0]])
  func `The first programme of the table is the publication's own, whichever map comes first`(_ order: [Int]) throws {
    var script = TransportScript()
    Self.script(Self.three, maps: order, into: &script)
    let found = try taken(script.bytes, .each)
    #expect(found.keys.sorted() == [0, 7, 9])
    for (key, content) in [(UInt16(0), UInt8(1)), (7, 7), (9, 9)] {
      #expect(found[key] == [UInt8](repeating: content, count: 40), "programme \(key)")
    }
  }

  @Test func `Without that choice no other programme is taken`() throws {
    var script = TransportScript()
    Self.script(Self.three, into: &script)
    #expect(try taken(script.bytes, .first).keys.sorted() == [0])
    #expect(try taken(script.bytes, .number(9))[0] == [UInt8](repeating: 9, count: 40))
  }

  /// Their video does not come.
  @Test func `Programmes that wait for their start share what may wait`() throws {
    var publication = TransportPublication(reading: ClockReading(wall: 0, monotonic: 0), .each)
    publication.mostHeldAtStart = 3000
    var script = TransportScript()
    script.add(table: 0, TransportScript.association(Self.three.map { ($0.number, pid: $0.map) }))
    for program in Self.three {
      script.add(
        table: program.map,
        TransportScript.map(
          program.number, clock: program.audio,
          [(type: 0x0F, pid: program.audio, more: []), (type: 0x1B, pid: program.audio + 10, more: [])]))
    }
    for frame in 0..<100 {
      for program in Self.three {
        let bytes = TransportScript.adts([UInt8](repeating: 1, count: 50))
        script.add(program.audio, TransportScript.pes(0xC0, UInt64(90_000 + frame * 1920), bytes))
      }
    }
    var (actions, most): ([PublicationAction], Int) = ([], 0)
    for start in stride(from: 0, to: script.bytes.count, by: 1000) {
      let bytes = script.bytes[start..<min(start + 1000, script.bytes.count)]
      try publication.receive(ByteBuffer(bytes: bytes), now: 0, to: &actions)
      most = max(most, publication.heldBytes)
    }
    // With what of their frames is unfinished.
    #expect((2000...4000).contains(most), "\(most)")
    #expect(!publication.awaitsStart)
  }

  /// It waits for video that its map announces.
  @Test func `A programme that has not begun begins with no end`() throws {
    var publication = TransportPublication(reading: ClockReading(wall: 0, monotonic: 0), .each)
    var script = TransportScript()
    let programs = Self.three.prefix(2)
    script.add(table: 0, TransportScript.association(programs.map { ($0.number, pid: $0.map) }))
    for program in programs {
      var elements: [(type: UInt8, pid: UInt16, more: [UInt8])] = [(type: 0x0F, pid: program.audio, more: [])]
      if program.number != 1 { elements.append((type: 0x1B, pid: program.audio + 10, more: [])) }
      script.add(table: program.map, TransportScript.map(program.number, clock: program.audio, elements))
    }
    for frame in 0..<10 {
      for program in programs {
        let bytes = TransportScript.adts([UInt8](repeating: 1, count: 50))
        script.add(program.audio, TransportScript.pes(0xC0, UInt64(90_000 + frame * 1920), bytes))
      }
    }
    var actions: [PublicationAction] = []
    try publication.receive(ByteBuffer(bytes: script.bytes), now: 0, to: &actions)
    try publication.finish(now: 0, to: &actions)
    #expect(actions.contents.count == 10)
    #expect(!publication.takeFurther().flatMap(\.actions).contains { if case .event = $0 { true } else { false } })
  }

  @Test func `Eight programmes are published at a time`() throws {
    let many: [Numbered] = (1...12).map { ($0, 1000 + $0, 2000 + $0) }
    var script = TransportScript()
    Self.script(many, into: &script)
    let found = try taken(script.bytes, .each)
    #expect(found.count == MPEGTSLimits.publishedPrograms && found.keys.sorted() == [0, 2, 3, 4, 5, 6, 7, 8])
  }

  @Test func `A programme that goes ends alone, and one that comes begins`() throws {
    var publication = TransportPublication(reading: ClockReading(wall: 0, monotonic: 0), .each)
    var script = TransportScript()
    Self.script(Array(Self.three.prefix(2)), into: &script)
    Self.script([Self.three[0], Self.three[2]], version: 1, from: 40, into: &script)
    var actions: [PublicationAction] = []
    try publication.receive(ByteBuffer(bytes: script.bytes), now: 0, to: &actions)
    try publication.finish(now: 0, to: &actions)
    let further = publication.takeFurther()
    #expect(further.filter { $0.end == .gone }.map(\.program) == [7])
    #expect(further.filter { $0.program == 7 }.last?.end == .gone)
    #expect(further.filter { $0.program == 9 }.flatMap(\.actions).contents.count == 40)
    #expect(actions.contents == [UInt8](repeating: 1, count: 80))
  }

  @Test func `The first programme that goes ends alone as well, and is the first one again when it comes back`() throws
  {
    var publication = TransportPublication(reading: ClockReading(wall: 0, monotonic: 0), .each)
    var script = TransportScript()
    Self.script(Array(Self.three.prefix(2)), into: &script)
    Self.script([Self.three[1]], version: 1, from: 40, into: &script)
    Self.script(Array(Self.three.prefix(2)), version: 2, from: 80, into: &script)
    Self.script([Self.three[1]], version: 3, from: 120, into: &script)
    var actions: [PublicationAction] = []
    try publication.receive(ByteBuffer(bytes: script.bytes), now: 0, to: &actions)
    try publication.finish(now: 0, to: &actions)
    #expect(actions.contents == [UInt8](repeating: 1, count: 40))
    let further = publication.takeFurther()
    let first = further.filter { $0.program == 1 }
    #expect(first.filter { $0.end == .gone }.map(\.firstHasLeft) == [true, false])
    #expect(first.allSatisfy(\.isFirst) && first.flatMap(\.actions).contents == [UInt8](repeating: 1, count: 40))
    let other = further.filter { $0.program == 7 }
    #expect(other.flatMap(\.actions).contents.count == 160 && other.allSatisfy { $0.end == nil && !$0.isFirst })
  }

  @Test func `Each account names its own programme, and what is taken of that`() throws {
    var publication = TransportPublication(reading: ClockReading(wall: 0, monotonic: 0), .each)
    var script = TransportScript()
    Self.script(Self.three, into: &script)
    var actions: [PublicationAction] = []
    try publication.receive(ByteBuffer(bytes: script.bytes), now: 0, to: &actions)
    try publication.finish(now: 0, to: &actions)
    var accounts = [UInt16(1): actions]
    for further in publication.takeFurther() { accounts[further.program, default: []] += further.actions }
    for (number, actions) in accounts {
      let content = try #require(actions.contentAccount)
      #expect(content.program == number && content.programs == [1, 7, 9])
      #expect(content.elements.filter(\.isTaken).map(\.program) == [number])
    }
  }

  @Test func `A programme's cue before its first frame waits for it`() throws {
    var program = ProgramPublication(reading: ClockReading(wall: 0, monotonic: 0))
    var script = TransportScript()
    Self.script([Self.three[0]], frames: 3, into: &script)
    let events = TransportScript.events(script.bytes).1
    var actions: [PublicationAction] = []
    let map = try #require(events.maps.first)
    #expect(!program.hasMap)
    program.begin(map, 0, to: &actions)
    #expect(program.hasMap && program.encoder.isEmpty)
    program.receive(StreamCue(pid: 300, command: .timeSignal, section: []), to: &actions)
    #expect(!actions.contains { if case .inBand(.cue) = $0 { true } else { false } })
    for case .element(_, let pid, let event) in events { try program.receive(event, pid, 0, to: &actions) }
    #expect(actions.contents.count == 3)
    #expect(actions.count { if case .inBand(.cue) = $0 { true } else { false } } == 1)
  }

  @Test func `The figures of the connection are those of each programme`() async throws {
    let gate = ChoosyGate()
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let stream = try #require(StreamName("cam"))
    let others = try await loop.submit {
      let publisher = Publisher(
        protocolName: "SRT", remoteAddress: "192.0.2.7:4711", host: "192.0.2.7", gate: gate, logger: .silent)
      let others = FurtherPrograms(
        beside: stream, of: publisher, key: nil, software: "SRT", clock: .system(), loop: loop)
      let clock = WallClockAnchor(mediaTime: .zero, wallTime: WallTime(nanoseconds: 0))
      for program in [UInt16(7), 9] {
        let further = TransportPublication.Further(program: program, actions: [.event(.clock(clock))], encoder: "")
        #expect(others.perform([further]) == 0)
      }
      return NIOLoopBound(others, eventLoop: loop)
    }.get()
    #expect(try await eventually { gate.gate.sinks.count == 2 && gate.gate.sinks.allSatisfy { !$0.recorded.isEmpty } })
    try await loop.submit {
      others.value.measured(LinkFigures())
      others.value.end(.connectionLost("reset"))
      others.value.measured(LinkFigures())
    }.get()
    #expect(gate.gate.sinks.allSatisfy { $0.measurements == 1 && $0.ending == .connectionLost("reset") })
  }

  // MARK: by a request

  private final class Owner: TransportUploadOwner {
    var said: [String] = []
    func uploadIsAdmitted() { said.append("admitted") }
    func uploadIsRefused(_ refusal: TransportUpload.Refusal) { said.append("\(refusal)") }
    func uploadIsSilent() {}
    func uploadIsPaused(_ isPaused: Bool) {}
  }

  /// Admits all names but those that are refused.
  private final class ChoosyGate: PublishGate {
    let gate = RecordingGate()
    let refused: Set<String>

    init(refused: Set<String> = []) { self.refused = refused }

    func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
      if refused.contains(request.stream.description) { throw .unauthorized }
      return try await gate.admit(request)
    }
  }

  /// Forty more frames of some of the three programmes, and what is awaited after them.
  private struct Part {
    var programs: [Int]
    var until: @Sendable ([RecordingGate.Sink]) -> Bool
  }

  /// Sends a stream as `cam`, in two halves, then the further parts, and then does what `after` says. Stops the server at the
  /// end.
  private func upload(
    _ gate: ChoosyGate, name: String = "cam", streams: Int = 3, parts: [Part] = [],
    _ after: @escaping @Sendable (TransportUpload) -> Void
  ) async throws {
    let ingest = TransportIngest(gate: gate, clock: .system(), logger: .silent)
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let stream = try #require(StreamName(name))
    let bound = try await loop.submit {
      let owner = Owner()
      let upload = ingest.begin(
        stream, key: Secret("right"), programs: .each,
        of: TransportIngest.Client(
          protocolName: "HTTP", address: try SocketAddress(ipAddress: "192.0.2.7", port: 999), client: nil,
          software: "curl"),
        owner: owner, on: loop)
      return NIOLoopBound((owner, upload), eventLoop: loop)
    }.get()
    #expect(try await eventually { try await loop.submit { !bound.value.0.said.isEmpty }.get() })
    var script = TransportScript()
    Self.script(Self.three, into: &script)
    let bytes = ByteBuffer(bytes: script.bytes)
    try await loop.submit {
      bound.value.1?.receive(bytes.getSlice(at: 0, length: bytes.readableBytes / 2) ?? ByteBuffer())
    }.get()
    #expect(
      try await eventually {
        gate.gate.sinks.count == streams && gate.gate.sinks.allSatisfy { !$0.samples.isEmpty }
      })
    try await loop.submit {
      let half = bytes.readableBytes / 2
      bound.value.1?.receive(bytes.getSlice(at: half, length: bytes.readableBytes - half) ?? ByteBuffer())
    }.get()
    for (index, part) in parts.enumerated() {
      // One script, so that the counters of its packets go on.
      let start = script.bytes.count
      Self.script(
        part.programs.map { Self.three[$0] }, version: UInt8(index + 1), from: 40 * (index + 1), into: &script)
      let more = ByteBuffer(bytes: script.bytes[start...])
      try await loop.submit { bound.value.1?.receive(more) }.get()
      #expect(try await eventually { part.until(gate.gate.sinks) }, "part \(index)")
    }
    try await loop.submit { if let upload = bound.value.1 { after(upload) } }.get()
    await ingest.stop()
  }

  private func eventually(_ condition: () async throws -> Bool) async throws -> Bool {
    for _ in 0..<1000 where try await !condition() { try await Task.sleep(for: .milliseconds(10)) }
    return try await condition()
  }

  @Test func `Each programme is a stream with name and number, and the same key; it ends with the body`() async throws {
    let gate = ChoosyGate()
    try await upload(gate) { $0.finish() }
    let sinks = gate.gate.sinks.sorted { $0.request.stream < $1.request.stream }
    #expect(sinks.map { "\($0.request.stream)" } == ["cam", "cam-7", "cam-9"])
    for sink in sinks {
      #expect(sink.samples.count == 40 && sink.ending == .finished, "\(sink.request.stream)")
      #expect(sink.request.key?.matches(Secret("right")) == true && sink.request.origin == .peer)
      #expect(sink.request.host == "192.0.2.7" && sink.request.protocolName == "HTTP")
    }
  }

  @Test func `A programme that is refused, or replaced, costs itself alone`() async throws {
    let gate = ChoosyGate(refused: ["cam-7"])
    try await upload(gate, streams: 2) { upload in
      gate.gate.sinks.first { "\($0.request.stream)" == "cam-9" }?.close(.finished)
      upload.abandon("reset")
    }
    let sinks = gate.gate.sinks.sorted { $0.request.stream < $1.request.stream }
    #expect(sinks.map { "\($0.request.stream)" } == ["cam", "cam-9"])
    #expect(sinks.first?.samples.count == 40 && sinks.first?.ending == .connectionLost("reset"))
  }

  @Test func `A first programme that leaves ends its stream alone, and asks again when it comes back`() async throws {
    let gate = ChoosyGate()
    @Sendable func named(_ name: String, _ sinks: [RecordingGate.Sink]) -> [RecordingGate.Sink] {
      sinks.filter { "\($0.request.stream)" == name }
    }
    try await upload(
      gate,
      parts: [
        Part(programs: [1]) { named("cam", $0).first?.ending == FurtherPrograms.gone },
        // The gate answers later; what comes meanwhile waits.
        Part(programs: [0, 1]) { named("cam", $0).count == 2 && named("cam", $0).allSatisfy { !$0.samples.isEmpty } },
      ]
    ) { $0.finish() }
    let first = named("cam", gate.gate.sinks)
    #expect(first.map(\.samples.count) == [40, 40] && first.map(\.ending) == [FurtherPrograms.gone, .finished])
    let second = try #require(named("cam-7", gate.gate.sinks).first)
    #expect(second.samples.count == 120 && second.ending == .finished && gate.gate.sinks.count == 4)
    #expect(named("cam-9", gate.gate.sinks).first?.ending == FurtherPrograms.gone)
  }

  @Test func `All programmes are told why the connection is over`() async throws {
    // The helper stops the server.
    let stopped = ChoosyGate()
    try await upload(stopped) { _ in }
    #expect(stopped.gate.sinks.count == 3 && stopped.gate.sinks.allSatisfy { $0.ending == .shutdown })
    let replaced = ChoosyGate()
    try await upload(replaced) { _ in
      replaced.gate.sinks.first { "\($0.request.stream)" == "cam" }?.request.onEviction(.replaced)
    }
    let others = replaced.gate.sinks.filter { "\($0.request.stream)" != "cam" }
    let reason = "the connection's first programme ended (\(EndReason.replaced.text))"
    #expect(others.count == 2 && others.allSatisfy { $0.ending == .connectionLost(reason) })
  }

  @Test func `A connection that is lost is one for all of its programmes`() async throws {
    let gate = ChoosyGate()
    try await upload(gate) { $0.abandon("reset") }
    #expect(gate.gate.sinks.count == 3)
    #expect(gate.gate.sinks.allSatisfy { $0.ending == .connectionLost("reset") && $0.samples.count == 40 })
  }

  @Test func `A name that would be too long is none`() async throws {
    let gate = ChoosyGate()
    try await upload(gate, name: String(repeating: "a", count: 63), streams: 1) { $0.finish() }
    #expect(gate.gate.sinks.count == 1 && gate.gate.sinks.first?.samples.count == 40)
  }
}

extension [PublicationAction] {
  /// The first byte of each sample.
  fileprivate var contents: [UInt8] {
    compactMap {
      guard case .event(.sample(let sample)) = $0 else { return nil }
      return sample.payload.getInteger(at: sample.payload.readerIndex)
    }
  }

  fileprivate var contentAccount: TransportContent? {
    reversed().lazy.compactMap { if case .inBand(.content(let content)) = $0 { content } else { nil } }.first
  }
}

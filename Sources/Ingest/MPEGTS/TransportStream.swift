internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing

/// An MPEG transport stream as a value (ISO/IEC 13818-1): bytes go in, in pieces of any size; events come out. It may be
/// joined anywhere. No bytes make it fail: what is damaged is dropped and counted. `MPEGTSLimits` bounds its memory.
struct TransportStream {
  /// A programme that is followed.
  private struct Followed {
    var map: ProgramMap
    /// Shared by its tracks, so that they wrap together.
    var clock = ProgramClock.counter
  }

  /// A PID with tables.
  private struct TablePID {
    var continuity = ContinuityCheck()
    var sections = PSISectionReader()
  }

  let choice: ProgramChoice
  private var finder = TransportPacketFinder()
  private var association = ProgramAssociation()
  private var tables: [UInt16: TablePID] = [ProgramAssociation.pid: TablePID()]
  /// The newest map of each programme, and how often one came.
  private var maps: [UInt16: (map: ProgramMap, count: Int)] = [:]
  private var programs: [UInt16: Followed] = [:]
  /// The first programme that was followed, where each one is.
  private(set) var leading: UInt16?
  private var elements = ElementTable()
  /// Unfinished bytes of all tracks.
  private(set) var heldBytes = 0
  private var ownCounts = TransportCounts()
  private var pending: [ElementEvent] = []
  private var cues: [StreamCue] = []
  /// Packets of PIDs that belong to no followed programme.
  private var strays: [UInt16: Int] = [:]

  /// Maps of a later programme that come before the first one's: then the first one's is not waited for.
  private static let patience = 2

  init(_ choice: ProgramChoice = .first) { self.choice = choice }

  var counts: TransportCounts {
    var counts = ownCounts
    counts.skippedBytes = finder.skippedBytes
    counts.damagedPackets &+= finder.damagedPackets
    for element in elements.all { Self.add(element, to: &counts) }
    for table in tables.values { counts.damagedSections &+= table.sections.damaged }
    return counts
  }

  private static func add(_ element: ElementStream, to counts: inout TransportCounts) {
    counts.gaps &+= element.gaps
    counts.duplicates &+= element.duplicates
    counts.scrambled &+= element.allScrambled
    counts.malformedPES &+= element.malformed
    counts.damagedSections &+= element.damagedSections
    counts.damagedCues &+= element.damagedSections
    counts.encryptedCues &+= element.encryptedCues
    if !element.isRead { counts.unreadPackets &+= element.packets }
  }

  /// What is in the stream, for the API.
  var content: TransportContent { content(of: leading ?? programs.keys.min()) }

  /// The same for the publication of a programme.
  func content(of program: UInt16?) -> TransportContent {
    var content = TransportContent()
    content.program = program
    content.programs = association.entries.map(\.program)
    let counts = counts
    (content.damagedCues, content.encryptedCues) = (counts.damagedCues, counts.encryptedCues)
    for stream in elements.all {
      content.elements.append(
        TransportContent.Element(
          pid: stream.element.pid, program: stream.program, name: stream.element.content.name,
          kind: stream.element.content.kind,
          isTaken: stream.isTrack && (choice != .each || stream.program == program), packets: stream.packets))
    }
    for (pid, packets) in strays where elements.place(of: pid) == nil {
      let owner = maps.values.lazy.map(\.map).first { $0.elements.contains { $0.pid == pid } }
      let element = owner?.elements.first { $0.pid == pid }
      content.elements.append(
        TransportContent.Element(
          pid: pid, program: owner?.program, name: element?.content.name ?? Self.name(ofTable: pid),
          kind: element?.content.kind, isTaken: false, packets: packets))
    }
    content.elements.sort { $0.pid < $1.pid }
    let listed = strays.keys.lazy.filter { elements.place(of: $0) == nil }.reduce(0) { $0 &+ (strays[$1] ?? 0) }
    let unread = elements.all.lazy.filter { !$0.isRead }.reduce(0) { $0 &+ $1.packets }
    content.otherPackets = max(0, counts.unreadPackets &- listed &- unread)
    return content
  }

  /// Why nothing of the stream is published, by what it has: a programme that is missing, or what its tracks are. `wait` is the
  /// text of how long it was waited for.
  func fault(_ wait: String = "") -> WireError {
    let counts = counts
    guard !maps.isEmpty else {
      return WireError(
        .malformed,
        "no programme of an MPEG transport stream\(wait): \(counts.packets) packets, \(counts.skippedBytes) other bytes;"
          + " send MPEG-TS with PAT and PMT")
    }
    let numbers = association.entries.map(\.program)
    if case .number(let number) = choice, !numbers.contains(number) {
      let others = numbers.prefix(MPEGTSLimits.namedElements).map { "\($0)" }.joined(separator: ", ")
      return WireError(
        .unsupported, "programme \(number) is not in the stream, which has \(others); choose one of them")
    }
    let states = chosenOrAll.compactMap { maps[$0]?.map }.flatMap(\.elements).compactMap(state(of:))
    let rest = states.count - MPEGTSLimits.namedElements
    let named =
      states.prefix(MPEGTSLimits.namedElements).joined(separator: ", ") + (rest > 0 ? ", and \(rest) more" : "")
    return WireError(
      .unsupported,
      "nothing of the stream can be published\(wait): \(named.isEmpty ? "its maps name no track" : named); weir takes H.264, HEVC,"
        + " AAC, Opus, AC-3, E-AC-3, MP1, MP2, MP3 and G.711")
  }

  private var chosenOrAll: [UInt16] {
    if case .number(let number) = choice { [number] } else { association.entries.map(\.program) }
  }

  /// What became of an elementary stream. Nil for what is no track for anybody.
  private func state(of element: ProgramElement) -> String? {
    let name = "\(element.content.name) (PID \(element.pid))"
    if element.content == .splices { return nil }
    guard element.content.isTaken else { return "\(name) is not taken" }
    guard let stream = elements[element.pid], stream.packets > 0 else { return "\(name) did not come" }
    return stream.allScrambled > 0 ? "\(name) is scrambled" : "\(name) had no frame to begin with"
  }

  /// PIDs that standards reserve (ISO/IEC 13818-1 table 2-3, EN 300 468 table 1, ATSC A/65 §4.1).
  private static func name(ofTable pid: UInt16) -> String {
    switch pid {
    case 1: "CAT"
    case 0x10: "NIT"
    case 0x11: "SDT"
    case 0x12: "EIT"
    case 0x13: "RST"
    case 0x14: "TDT"
    case 0x1FFB: "PSIP"
    default: "unknown"
    }
  }

  // MARK: bytes

  mutating func receive(_ bytes: ByteBuffer, to out: inout [TransportEvent]) {
    finder.append(bytes)
    while let packet = finder.next() { receive(packet: packet, to: &out) }
  }

  /// The transport has lost bytes before those that come next. The continuity counters have 16 values: they show losses
  /// of fewer packets exactly, of each PID. After more, every PID counts as interrupted.
  mutating func noteLoss(bytes: Int) {
    finder.breakOff()
    guard bytes / TransportPacketFinder.packetBytes >= 16 else { return }
    for pid in elements.pids { elements.change(pid) { $0.breakOff() } }
    for pid in tables.keys { tables[pid]?.continuity.breakOff() }
  }

  /// The end of the stream: what is complete comes out.
  mutating func finish(to out: inout [TransportEvent]) {
    while let packet = finder.next(isEnd: true) { receive(packet: packet, to: &out) }
    for pid in elements.pids { finish(pid, to: &out) }
  }

  private mutating func receive(packet bytes: ByteBuffer, to out: inout [TransportEvent]) {
    ownCounts.packets &+= 1
    guard let packet = TransportPacket(bytes) else {
      ownCounts.damagedPackets &+= 1
      return
    }
    if packet.pid == TransportPacket.nullPID { return }
    if packet.adaptation?.isDiscontinuity == true, packet.adaptation?.clock != nil {
      for (number, program) in programs where program.map.clockPID == packet.pid {
        out.append(.discontinuity(program: number))
      }
    }
    if let place = elements.place(of: packet.pid) {
      receive(packet, at: place, to: &out)
    } else if tables[packet.pid] != nil {
      receive(table: packet, to: &out)
    } else {
      ownCounts.unreadPackets &+= 1
      if strays[packet.pid] != nil || strays.count < MPEGTSLimits.elements { strays[packet.pid, default: 0] &+= 1 }
    }
  }

  // MARK: elementary streams

  private mutating func receive(
    _ packet: TransportPacket, at place: ElementTable.Place, to out: inout [TransportEvent]
  ) {
    let number = place.program
    let more = elements.change(place) { element in
      element.receive(
        packet, clock: &programs[number, default: Followed(map: ProgramMap(program: number))].clock, to: &pending,
        cues: &cues)
    }
    heldBytes &+= more ?? 0
    if heldBytes > MPEGTSLimits.heldBytes {
      ownCounts.overflows &+= 1
      passOn(number, packet.pid, to: &out)
      for pid in elements.pids {
        elements.change(pid) { $0.drop(to: &pending) }
        passOn(elements.place(of: pid)?.program ?? number, pid, to: &out)
      }
      heldBytes = elements.all.reduce(0) { $0 &+ $1.heldBytes }
    }
    passOn(number, packet.pid, to: &out)
    if cues.isEmpty { return }
    for cue in cues { out.append(.splice(program: number, cue)) }
    cues.removeAll(keepingCapacity: true)
  }

  private mutating func passOn(_ program: UInt16, _ pid: UInt16, to out: inout [TransportEvent]) {
    // Most packets end nothing.
    if pending.isEmpty { return }
    for event in pending { out.append(.element(program: program, pid: pid, event)) }
    pending.removeAll(keepingCapacity: true)
  }

  private mutating func finish(_ pid: UInt16, to out: inout [TransportEvent]) {
    guard let place = elements.place(of: pid) else { return }
    let number = place.program
    let more = elements.change(place) { element in
      element.finish(
        clock: &programs[number, default: Followed(map: ProgramMap(program: number))].clock, to: &pending)
    }
    heldBytes &+= more ?? 0
    passOn(number, pid, to: &out)
  }

  // MARK: tables

  private mutating func receive(table packet: TransportPacket, to out: inout [TransportEvent]) {
    guard let payload = packet.payload, !packet.isScrambled, var table = tables[packet.pid] else { return }
    var sections: [PSISection] = []
    switch table.continuity.check(packet) {
    case .duplicate: ownCounts.duplicates &+= 1
    case .gap:
      ownCounts.gaps &+= 1
      table.sections.dropUnfinished()
      sections = table.sections.receive(payload, isUnitStart: packet.isUnitStart)
    case .inOrder: sections = table.sections.receive(payload, isUnitStart: packet.isUnitStart)
    }
    tables[packet.pid] = table
    for section in sections {
      if packet.pid == ProgramAssociation.pid {
        if association.receive(section) { followAssociation(to: &out) }
      } else if let map = ProgramMap(section),
        association.entries.contains(ProgramAssociation.Entry(program: map.program, pid: packet.pid))
      {
        maps[map.program] = (map, min((maps[map.program]?.count ?? 0) &+ 1, Self.patience))
        follow(to: &out)
      }
    }
  }

  /// The association table has changed.
  private mutating func followAssociation(to out: inout [TransportEvent]) {
    let wanted = Set(association.entries.map(\.pid) + [ProgramAssociation.pid])
    for pid in tables.keys where !wanted.contains(pid) {
      ownCounts.damagedSections &+= tables[pid]?.sections.damaged ?? 0
      tables[pid] = nil
    }
    for pid in wanted where tables[pid] == nil { tables[pid] = TablePID() }
    let numbers = association.entries.map(\.program)
    for number in maps.keys where !numbers.contains(number) { maps[number] = nil }
    out.append(.programs(numbers))
    for number in programs.keys.sorted() where !numbers.contains(number) { end(number, to: &out) }
    follow(to: &out)
  }

  /// Follows the programmes that are chosen, with their newest maps.
  private mutating func follow(to out: inout [TransportEvent]) {
    for number in chosen {
      guard let map = maps[number]?.map, programs[number]?.map != map else { continue }
      if programs[number] == nil {
        guard choice != .each || programs.count < MPEGTSLimits.publishedPrograms || number == leading else { continue }
        programs[number] = Followed(map: map)
      }
      if choice == .each, leading == nil { leading = number }
      programs[number]?.map = map
      replaceElements(by: map, to: &out)
      out.append(.program(map))
    }
  }

  private var chosen: [UInt16] {
    let numbers = association.entries.map(\.program)
    switch choice {
    case .all: return numbers
    case .number(let number): return numbers.filter { $0 == number }
    case .first: return (programs.keys.first ?? firstWithTrack(numbers)).map { [$0] } ?? []
    case .each:
      // The others wait for it: which one it is depends on the table, not on which map comes first.
      guard let first = leading ?? firstWithTrack(numbers) else { return [] }
      return [first] + numbers.filter { $0 != first && (programs[$0] != nil || hasTrack($0)) }
    }
  }

  private func firstWithTrack(_ numbers: [UInt16]) -> UInt16? {
    let isImpatient = maps.values.contains { $0.count >= Self.patience }
    for number in numbers {
      guard let map = maps[number]?.map else {
        if isImpatient { continue }
        return nil
      }
      if map.elements.contains(where: \.content.isTaken) { return number }
    }
    return nil
  }

  private func hasTrack(_ number: UInt16) -> Bool {
    maps[number]?.map.elements.contains(where: \.content.isTaken) == true
  }

  /// Ends the elementary streams that the map no longer has, and begins new ones. The others go on.
  private mutating func replaceElements(by map: ProgramMap, to out: inout [TransportEvent]) {
    for pid in elements.pids where elements.place(of: pid)?.program == map.program {
      if elements[pid]?.element != map.elements.first(where: { $0.pid == pid }) { remove(pid, to: &out) }
    }
    var counts: [MediaKind: Int] = [:]
    for element in map.elements {
      var isTaken = true
      if let kind = element.content.kind, element.content.isTaken {
        counts[kind, default: 0] += 1
        isTaken = counts[kind, default: 0] <= MPEGTSLimits.tracksOfKind
      }
      guard elements.place(of: element.pid) == nil, tables[element.pid] == nil,
        elements.count < MPEGTSLimits.elements * (choice == .all || choice == .each ? 4 : 1)
      else { continue }
      elements.add(ElementStream(element, of: map.program, isTaken: isTaken))
    }
  }

  private mutating func end(_ number: UInt16, to out: inout [TransportEvent]) {
    for pid in elements.pids where elements.place(of: pid)?.program == number { remove(pid, to: &out) }
    programs[number] = nil
    out.append(.programEnded(number))
  }

  private mutating func remove(_ pid: UInt16, to out: inout [TransportEvent]) {
    finish(pid, to: &out)
    guard let element = elements.remove(pid) else { return }
    Self.add(element, to: &ownCounts)
    heldBytes &-= element.heldBytes
  }
}

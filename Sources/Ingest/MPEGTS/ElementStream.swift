internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing

/// One elementary stream of a followed programme: packets go in, frames and cues come out.
struct ElementStream {
  let program: UInt16
  let element: ProgramElement
  /// Packets with its PID.
  private(set) var packets = 0
  private(set) var gaps = 0
  private(set) var duplicates = 0
  private(set) var scrambled = 0
  /// Cues whose content is encrypted, and those that end within a field.
  private(set) var encryptedCues = 0
  private(set) var malformedCues = 0
  /// Its media becomes a track.
  let isTrack: Bool
  let isRead: Bool
  /// Bytes that are kept for later.
  private(set) var heldBytes = 0
  private var continuity = ContinuityCheck()
  private var pes: PESReader
  private var sections: PSISectionReader?
  private var video: VideoElementReader?
  private var audio: AudioElementReader?

  /// `isTaken` is whether its media becomes a track; otherwise its packets are counted only.
  init(_ element: ProgramElement, of program: UInt16, isTaken: Bool) {
    self.element = element
    self.program = program
    pes = PESReader(keepsLength: element.content.kind != .video)
    switch element.content {
    case _ where !isTaken: break
    case .video(let coding): video = VideoElementReader(coding)
    case .adts: audio = AudioElementReader(ADTSReader())
    case .latm: audio = AudioElementReader(LATMReader())
    case .ac3: audio = AudioElementReader(AC3FrameReader())
    case .eac3: audio = AudioElementReader(EAC3FrameReader())
    case .mpegAudio: audio = AudioElementReader(MPEGAudioFrameReader())
    case .g711(let law): audio = AudioElementReader(G711SampleReader(law))
    case .opus(let channels): audio = OpusPacketReader(channels: channels).map { AudioElementReader($0) }
    case .splices: sections = PSISectionReader()
    case .unsupported, .data: break
    }
    isTrack = video != nil || audio != nil
    isRead = video != nil || audio != nil || sections != nil
  }

  var malformed: Int { pes.malformed }
  var damagedSections: Int { (sections?.damaged ?? 0) &+ malformedCues }
  /// Scrambled by the packets' headers or by the headers of PES packets.
  var allScrambled: Int { scrambled &+ pes.scrambled }

  /// Takes a packet. Returns by how much `heldBytes` has grown.
  @discardableResult
  mutating func receive(
    _ packet: TransportPacket, clock: inout WireClock, to out: inout [ElementEvent], cues: inout [StreamCue]
  ) -> Int {
    let before = heldBytes
    read(packet, clock: &clock, to: &out, cues: &cues)
    return heldBytes &- before
  }

  private mutating func read(
    _ packet: TransportPacket, clock: inout WireClock, to out: inout [ElementEvent], cues: inout [StreamCue]
  ) {
    packets &+= 1
    guard isRead, let payload = packet.payload else { return }
    guard !packet.isScrambled else {
      scrambled &+= 1
      return noteLoss(to: &out)
    }
    switch continuity.check(packet) {
    case .inOrder: break
    case .duplicate:
      duplicates &+= 1
      return
    case .gap:
      gaps &+= 1
      noteLoss(to: &out)
    }
    if !isTrack {
      for section in sections?.receive(payload, isUnitStart: packet.isUnitStart) ?? [] {
        switch SpliceCue(section, pid: element.pid) {
        case .cue(let cue)?: cues.append(cue)
        case .encrypted?: encryptedCues &+= 1
        case .damaged?: malformedCues &+= 1
        case nil: break
        }
      }
      return
    }
    let step = pes.receive(payload, isUnitStart: packet.isUnitStart)
    if let held = video?.receive(step, clock: &clock, to: &out) { heldBytes = held }
    if let held = audio?.receive(step, clock: &clock, to: &out) { heldBytes = held }
  }

  /// Packets of any PID are missing, more than the continuity counter can tell.
  mutating func breakOff() { continuity.breakOff() }

  /// What is unfinished cannot be completed. The bytes up to the next PES packet belong to it.
  private mutating func noteLoss(to out: inout [ElementEvent]) {
    pes.drop()
    sections?.dropUnfinished()
    video?.noteLoss()
    audio?.noteLoss(to: &out)
    count()
  }

  private mutating func count() { heldBytes = (video?.heldBytes ?? 0) &+ (audio?.heldBytes ?? 0) }

  /// Drops everything that is kept.
  mutating func drop(to out: inout [ElementEvent]) {
    pes.drop()
    video?.drop(to: &out)
    audio?.noteLoss(to: &out)
    count()
  }

  /// The end of the stream. Returns by how much `heldBytes` has grown.
  @discardableResult
  mutating func finish(clock: inout WireClock, to out: inout [ElementEvent]) -> Int {
    let before = heldBytes
    video?.finish(clock: &clock, to: &out)
    count()
    return heldBytes &- before
  }
}

internal import Base
internal import FMP4
internal import Logging
internal import NIOCore
internal import Publishing

/// A publication whose media comes by RTP: decrypted packets go in, media events and feedback for the sender come out.
struct WebRTCPublication {
  /// Nanoseconds between two requests for a key frame.
  static let pause: Int64 = 500_000_000
  /// How long a key frame that is asked for is awaited before that is told, in nanoseconds: some ten requests.
  private static let requestPatience: Int64 = 5_000_000_000
  /// Frames that must have come meanwhile.
  private static let requestFrames = 30
  /// How long before a key frame is due it is asked for, at least, in nanoseconds.
  static let leastLead: Int64 = 100_000_000
  private static let (feedbackPause, reportPause): (Int64, Int64) = (40_000_000, 1_000_000_000)
  /// Nanoseconds between two requests where packets are lost, as a request may be, and for how long that counts.
  static let lossyPause: Int64 = 250_000_000
  private static let lossTime: Int64 = 10_000_000_000
  /// Longest silence that is filled, in ticks of Opus: a second.
  private static let longestSilence: UInt32 = 48_000

  /// Longest distance of key frames that the stream's segments want, in nanoseconds. Nil if distances do not matter.
  var keyFrameDistance: Int64?
  let negotiation: Negotiation
  var publication: Publication
  var clocks = SenderClocks()
  /// Senders (SSRC) of media, and the receiver of each at the same place. They are few, and a packet changes one in place: a
  /// dictionary would hand out copies.
  private var sources: [UInt32] = []
  private var receivers: [RTPReceiver] = []
  /// The tracks of senders that send packets again (RFC 4588).
  private var repairs: [UInt32: TrackID] = [:]
  /// The newest sender of each track. Earlier ones are over: a sender may take another number (RFC 3550 §8.2).
  private var current: [TrackID: UInt32] = [:]
  /// By the tracks of the offer.
  var videos: [TrackID: Video] = [:]
  var simulcasts: [Simulcast]
  /// When the first audio came. It is left out while encodings are chosen: the stream begins with a key frame of theirs.
  var audioBegan: MonotonicTime?
  var audios: [TrackID: Audio] = [:]
  /// When media last came; what waits behind a pause; and when that ended, until a key frame comes.
  var newestMedia: MonotonicTime?
  var resumption: Resumption?
  var resumedAt: MonotonicTime?
  private var arrivals: ArrivalLog
  private var estimate: BitRateEstimate
  private var events: [RTPReceiver.Event] = []
  private var (fedBack, reported): (MonotonicTime, MonotonicTime)
  /// How many packets of video were missing, and when that last grew.
  private var missed: UInt64 = 0
  private var missedAt: MonotonicTime?
  /// How often numbers of packets jumped, and when that last grew, while the stream has a warning of it.
  private var jumps: UInt64 = 0
  private var jumpedAt: MonotonicTime?
  /// The sender said that it ends.
  private(set) var hasEnded = false

  init(_ negotiation: Negotiation, reading: ClockReading, now: MonotonicTime) {
    self.negotiation = negotiation
    publication = Publication(reading: reading, wire: 90_000, isCaptured: true)
    arrivals = ArrivalLog(origin: now)
    estimate = BitRateEstimate(now: now)
    (fedBack, reported) = (now, now)
    simulcasts = negotiation.simulcasts.map { Simulcast($0.map(\.id)) }
    publication.receive(
      PublicationMetadata(
        hasVideo: negotiation.tracks.contains { $0.kind == .video },
        hasAudio: negotiation.tracks.contains { $0.kind == .audio }))
    for track in negotiation.tracks where track.rid == nil { publication.receive(TrackStatement(), of: track.id) }
  }

  /// Bytes that are held: of packets and unfinished frames, and of media before the start.
  var heldBytes: Int {
    receivers.reduce(publication.heldBytes &+ (resumption?.byteCount ?? 0)) { $0 &+ $1.heldBytes }
  }

  var encoder: String { publication.encoder }
  private var figures: LinkFigures {
    receivers.reduce(into: LinkFigures()) { sum, one in
      sum.received &+= one.received
      sum.lost &+= one.missed
      sum.retransmitted &+= one.repaired
      sum.dropped &+= one.dropped
    }
  }

  /// Whether a packet of this sender is looked at: senders are counted before anything is kept of them.
  func takes(source: UInt32) -> Bool {
    sources.contains(source) || repairs[source] != nil || sources.count + repairs.count < WebRTCLimits.sources
  }

  /// The receivers, by rising numbers of their senders.
  private var places: [Int] { sources.indices.sorted { sources[$0] < sources[$1] } }

  // MARK: packets

  /// Takes a packet. False if it has no media of a track.
  @discardableResult
  mutating func receive(
    rtp datagram: ByteBuffer, now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) -> Bool {
    guard let packet = RTPPacket(datagram) else { return false }
    if var value = packet.value(of: negotiation.feedbackNumber), let number: UInt16 = value.readInteger() {
      arrivals.saw(number, now: now)
    }
    estimate.saw(datagram.readableBytes)
    guard let place = sources.firstIndex(of: packet.source) else {
      if let isMedia = try receive(repeated: packet, now, to: &out) { return isMedia }
      guard let new = begin(packet) else { return false }
      return try receive(packet, at: new, now, to: &out)
    }
    return try receive(packet, at: place, now, to: &out)
  }

  private mutating func receive(
    _ packet: RTPPacket, at place: Int, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) -> Bool {
    let track = receivers[place].track
    guard track.format.payloadType == packet.payloadType, !receivers[place].isOver else { return false }
    receivers[place].receive(packet, now: now, to: &events)
    try passOn(track, now, to: &out)
    return packet.payload.readableBytes > 0
  }

  /// A new sender begins with media: one that only pads is none of a track. Returns its place.
  private mutating func begin(_ packet: RTPPacket) -> Int? {
    guard packet.payload.readableBytes > 0, takes(source: packet.source), let track = negotiation.track(of: packet)
    else { return nil }
    let receiver = RTPReceiver(track, source: packet.source)
    // What is missing is asked for again. It may not come, so a key frame is asked for as well.
    if receiver.lacksBeginning(packet) { videos[track.id, default: Video()].isBroken = true }
    sources.append(packet.source)
    receivers.append(receiver)
    if let former = current.updateValue(packet.source, forKey: track.id) {
      if let place = sources.firstIndex(of: former) { receivers[place].end() }
      repairs = repairs.filter { $0.value != track.id }
      beginAgain(track.id)
    }
    return receivers.count - 1
  }

  /// Takes a packet that repeats another one. Nil if it is of another kind; false if it has nothing that was missing.
  private mutating func receive(
    repeated packet: RTPPacket, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) -> Bool? {
    if repairs[packet.source] == nil {
      guard takes(source: packet.source), let track = negotiation.track(repairedBy: packet) else { return nil }
      repairs[packet.source] = track.id
    }
    guard let id = repairs[packet.source], let source = current[id], let place = sources.firstIndex(of: source)
    else { return false }
    let track = receivers[place].track
    guard track.repair == packet.payloadType,
      let original = packet.repeated(of: source, type: track.format.payloadType),
      receivers[place].receive(repeated: original, now: now, to: &events)
    else { return false }
    try passOn(track, now, to: &out)
    return true
  }

  /// Another sender's timestamps begin at a random value, and its frames with a key frame.
  private mutating func beginAgain(_ id: TrackID) {
    if negotiation.tracks.contains(where: { $0.id == id && $0.kind == .video }) {
      videos[id, default: Video()].lastTimestamp = nil
      videos[id, default: Video()].isBroken = true
    }
    audios[id]?.next = nil
    if let index = simulcast(of: id) { beginAgain(id, in: index) } else { clocks.forget(id) }
  }

  mutating func receive(rtcp datagram: ByteBuffer, now: MonotonicTime, to out: inout [PublicationAction]) {
    for event in RTCPReader.read(datagram) {
      switch event {
      case .report(let report):
        guard let place = sources.firstIndex(of: report.source), !receivers[place].isOver else { continue }
        receivers[place].receive(report, now: now)
        receive(report, of: receivers[place].track, now)
        if let time = clocks.timeOfDay { publication.receive(timeOfDay: time, to: &out) }
      case .bye(let source):
        guard let place = sources.firstIndex(of: source), !receivers[place].isOver else { continue }
        let track = receivers[place].track
        hasEnded = hasEnded || track.kind == .video && endsPicture(track.id)
      // weir sends nothing to a publisher.
      case .again, .keyFrame, .estimate, .received: break
      }
    }
  }

  private mutating func passOn(
    _ track: Negotiation.Track, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    // Most packets end no frame.
    var batch: [RTPReceiver.Event] = []
    if !events.isEmpty { swap(&batch, &events) }
    for event in batch { try take(event, track, now, to: &out) }
    if !clocks.isRunning {
      clocks.isRunning = out.contains { if case .event(.sample) = $0 { true } else { false } }
    }
  }

  /// Takes what waits for nothing.
  mutating func pass(
    _ event: RTPReceiver.Event, _ track: Negotiation.Track, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    if leavesOut(event, track, now, to: &out) { return }
    switch event {
    case .frame(let frame): try receive(frame, track, now, to: &out)
    case .audio(let packet, let lost): try receive(packet, lost: lost, track, now, to: &out)
    case .lostFrame:
      videos[track.id, default: Video()].isBroken = true
      if isIn(track) { out.append(.lost(.video)) }
    }
  }

  // MARK: audio

  private mutating func receive(
    _ packet: RTPPacket, lost: Int, _ track: Negotiation.Track, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    var audio = audios[track.id] ?? Audio()
    defer { audios[track.id] = audio }
    if holdsAudio(now) {
      _ = clocks.time(track.id, .audio, packet.timestamp, hertz: track.format.clock, now: now)
      return out.append(.inBand(.early(.audio)))
    }
    for _ in 0..<min(lost, 64) { out.append(.lost(.audio)) }
    if !audio.isConfigured {
      audio.isConfigured = true
      let record = track.coding == .opus ? Self.opusRecord : G711.record(sampleRate: track.format.clock, channels: 1)
      _ = try publication.configure(track.id, track.coding, record: ByteBuffer(bytes: record), now: now, to: &out)
    }
    if track.coding == .opus, let duration = Opus.packetDuration(packet.payload) {
      fillSilence(before: packet, &audio, track, now, to: &out)
      audio.next = packet.timestamp &+ duration
      audio.head = packet.payload.getInteger(at: packet.payload.readerIndex) ?? 0
    }
    give(packet.timestamp, packet.payload, track, now, to: &out)
  }

  /// Packets that did not come, or that a sender leaves out in silence (DTX), become packets without content, as RFC 6716
  /// §4.4 has them: decoders conceal them. So the samples have no hole. They are no more than time allows, whatever a
  /// packet claims.
  private mutating func fillSilence(
    before packet: RTPPacket, _ audio: inout Audio, _ track: Negotiation.Track, _ now: MonotonicTime,
    to out: inout [PublicationAction]
  ) {
    audio.credit = min(audio.credit, WebRTCLimits.silenceAhead) &+ (audio.arrived.map { now &- $0 } ?? 0)
    audio.arrived = now
    // One frame, coded as those before.
    let empty = ByteBuffer(integer: audio.head & 0xFC)
    guard var next = audio.next, let length = Opus.packetDuration(empty) else { return }
    let missing = packet.timestamp &- next
    let time = Int64(missing) * 1_000_000_000 / Int64(Self.longestSilence)
    guard missing <= Self.longestSilence, time <= audio.credit else { return }
    audio.credit &-= time
    for _ in 0..<(missing / length) {
      give(next, empty, track, now, to: &out)
      next = next &+ length
    }
  }

  private mutating func give(
    _ timestamp: UInt32, _ payload: ByteBuffer, _ track: Negotiation.Track, _ now: MonotonicTime,
    to out: inout [PublicationAction]
  ) {
    let time = clocks.time(track.id, .audio, timestamp, hertz: track.format.clock, now: now)
    publication.receive(
      WireUnit(track: track.id, coding: track.coding, time: time, payload: payload), now: now, to: &out)
  }

  /// Stereo, whatever is coded: a decoder makes two channels of one. The delay is that of libopus.
  private static let opusRecord: [UInt8] = (try? Opus.Configuration(channels: 2, preSkip: 312).record()) ?? []

  // MARK: time

  /// Handles the passing of time. Returns datagrams of RTCP for the sender, not encrypted.
  mutating func tick(now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) -> [ByteBuffer] {
    var feedback = RTCPWriter(now &- reported >= Self.reportPause ? reports(now) : [])
    let isEmpty = feedback.bytes.readableBytes
    try tendResumption(now, to: &out)
    tendSimulcasts(now, to: &out)
    noteLosses(now)
    noteJumps(now, to: &out)
    let asked = tracksToAsk(now)
    for place in places where !receivers[place].isOver {
      let (track, source) = (receivers[place].track, sources[place])
      let missing = receivers[place].tick(now: now, to: &events)
      try passOn(track, now, to: &out)
      feedback.again(missing, of: source)
      if asked.contains(track.id) {
        feedback.keyFrame(of: source)
        tellIfIgnored(track.id, now, to: &out)
      }
    }
    if now &- reported >= Self.reportPause {
      reported = now
      if negotiation.feedbackNumber == nil {
        let those = places.filter { receivers[$0].track.takesEstimates }.map { sources[$0] }
        if !those.isEmpty { feedback.estimate(estimate.next(figures, now: now), of: those) }
      }
    }
    var datagrams = feedback.bytes.readableBytes > isEmpty || reported == now ? [feedback.bytes] : []
    if now &- fedBack >= Self.feedbackPause, let source = sources.min(), let body = arrivals.feedback() {
      fedBack = now
      var transport = RTCPWriter()
      transport.arrivals(body, of: source)
      datagrams.append(transport.bytes)
    }
    try publication.tick(now: now, to: &out)
    return datagrams
  }

  private mutating func noteLosses(_ now: MonotonicTime) {
    var count: UInt64 = 0
    for receiver in receivers where receiver.track.kind == .video { count &+= receiver.dropped &+ receiver.repaired }
    if count > missed { missedAt = now }
    missed = count
  }

  /// Tells that numbers of packets jump, once, until they did not for a while.
  private mutating func noteJumps(_ now: MonotonicTime, to out: inout [PublicationAction]) {
    let count = receivers.reduce(into: UInt64(0)) { $0 &+= $1.jumps }
    if count > jumps {
      if jumpedAt == nil { out.tell(.numbersJump) }
      jumpedAt = now
    } else if let at = jumpedAt, now &- at >= WebRTCLimits.jumpsTold {
      jumpedAt = nil
      out.append(.withdraw(.numbersJump))
    }
    jumps = count
  }

  /// The network has lost packets of late.
  private func isLossy(_ now: MonotonicTime) -> Bool { missedAt.map { now &- $0 < Self.lossTime } ?? false }

  /// This process did not run for so long, in nanoseconds. Packets waited in the socket meanwhile: none is late for that.
  mutating func pardon(_ time: Int64, now: MonotonicTime) {
    for place in receivers.indices { receivers[place].pardon(time, now: now) }
  }

  private mutating func reports(_ now: MonotonicTime) -> [RTCPWriter.Reception] {
    places.compactMap { receivers[$0].reception(now: now) }
  }

  /// The stream wants a key frame soon. It is asked for within `pause`.
  mutating func requestKeyFrame() {
    for track in negotiation.tracks where track.kind == .video { videos[track.id, default: Video()].isWanted = true }
  }

  /// Tells, once, that requests for key frames are not answered.
  private mutating func tellIfIgnored(_ id: TrackID, _ now: MonotonicTime, to out: inout [PublicationAction]) {
    guard let video = videos[id], !video.isTold, let unanswered = video.unanswered,
      unanswered.count >= Self.requestFrames, now &- unanswered.since >= Self.requestPatience
    else { return }
    let isFirst = !videos.values.contains { $0.isTold }
    videos[id]?.isTold = true
    guard isFirst else { return }
    out.append(.log(.warning, PublicationWarning.ignoresRequests.description))
    out.append(.warn(.ignoresRequests))
  }

  /// The tracks that are asked for a key frame now. Encodings of one picture are asked together, as soon as one of them wants it.
  private mutating func tracksToAsk(_ now: MonotonicTime) -> Set<TrackID> {
    let present = negotiation.tracks.filter {
      $0.kind == .video && $0.asksForKeyFrames && current[$0.id] != nil
    }.map(\.id)
    var asked = Set(present.filter { simulcast(of: $0) == nil && wantsKeyFrame($0, now) })
    for simulcast in simulcasts {
      let members = simulcast.members.filter {
        present.contains($0) && (!simulcast.isChosen || simulcast.flows($0, now))
      }
      // One that has stopped, or that the stream does not have, takes what the others get, if there are any.
      let kept = members.filter { simulcast.track(of: $0) != nil && simulcast.keepsUp($0, now) }
      let judges = kept.isEmpty ? members : kept
      if judges.contains(where: { wantsKeyFrame($0, now) }) { asked.formUnion(members) }
    }
    for id in asked { videos[id, default: Video()].noteRequest(now) }
    return asked
  }

  /// Whether to ask for a key frame now: there is none, frames were lost, the stream wants one, or a segment would become too
  /// long.
  private mutating func wantsKeyFrame(_ id: TrackID, _ now: MonotonicTime) -> Bool {
    let isLossy = isLossy(now)
    let isDue = videos[id, default: Video()].isDue(keyFrameDistance, reserve: isLossy ? Self.lossyPause : 0, now)
    guard let video = videos[id] else { return false }
    // One that is on its way is waited for. Viewers' wishes are passed on twice a second, whatever the network does.
    let isUrgent = isLossy && (video.isBroken || isDue)
    let pause = isUrgent ? min(max(video.response &+ 50_000_000, Self.lossyPause), Self.pause) : Self.pause
    return (video.isBroken || video.isWanted || isDue) && (video.asked.map { now &- $0 >= pause } ?? true)
  }
}

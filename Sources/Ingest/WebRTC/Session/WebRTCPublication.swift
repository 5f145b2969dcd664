internal import FMP4
internal import Logging
internal import NIOCore

/// A publication whose media comes by RTP: decrypted packets go in, media events and feedback for the sender come out.
struct WebRTCPublication {
  /// A track of video, and when key frames of it came and were asked for.
  private struct Video {
    var parameters = VideoParameterSets(.h264)
    var isConfigured = false
    var lastTimestamp: UInt32?
    var keyFrame: MonotonicTime?
    /// Frames were lost behind the newest key frame.
    var isBroken = false
    var asked: MonotonicTime?
    /// The first request since the newest key frame.
    var firstAsked: MonotonicTime?
    /// Frames since that request: when the first came, and how many. A sender without frames ignores nothing.
    var unanswered: (since: MonotonicTime, count: Int)?
    /// Since when the first one is awaited.
    var awaitedSince: MonotonicTime?
    /// It was told that none comes.
    var isTold = false
    /// The stream wants one, whatever its distance.
    var isWanted = false
    /// From a request to its key frame, in nanoseconds: the longest of late.
    var response = WebRTCPublication.leastLead
    var refusal: String?

    mutating func noteKeyFrame(_ now: MonotonicTime) {
      // A camera that was off for long is no slow sender.
      if let firstAsked {
        response = max(min(now &- firstAsked, 2 * WebRTCPublication.pause), response / 8 &* 7)
      }
      (firstAsked, unanswered) = (nil, nil)
      (keyFrame, isBroken, isWanted) = (now, false, false)
    }

    /// Whether the next key frame would come too late if it were asked for later. The first one comes by itself, maybe slowly.
    mutating func isDue(_ distance: Int64?, _ now: MonotonicTime) -> Bool {
      guard let keyFrame else {
        awaitedSince = awaitedSince ?? now
        return awaitedSince.map { now &- $0 >= WebRTCPublication.pause } ?? false
      }
      guard let distance else { return false }
      let lead = min(max(response &+ WebRTCPublication.leastLead / 2, WebRTCPublication.leastLead), distance / 4)
      return now &- keyFrame >= distance &- lead
    }
  }

  /// A track of audio, and where its next packet is expected.
  private struct Audio {
    var isConfigured = false
    var next: UInt32?
    var head: UInt8 = 0
    /// When the newest packet came, and how much silence may be made up, in nanoseconds.
    var arrived: MonotonicTime?
    var credit = WebRTCLimits.silenceAhead
  }

  /// Nanoseconds between two requests for a key frame.
  private static let pause: Int64 = 500_000_000
  /// How long a key frame that is asked for is awaited before that is told, in nanoseconds: some ten requests.
  private static let requestPatience: Int64 = 5_000_000_000
  /// Frames that must have come meanwhile.
  private static let requestFrames = 30
  /// How long before a key frame is due it is asked for, at least, in nanoseconds.
  private static let leastLead: Int64 = 100_000_000
  private static let (feedbackPause, reportPause): (Int64, Int64) = (40_000_000, 1_000_000_000)
  /// Longest silence that is filled, in ticks of Opus: a second.
  private static let longestSilence: UInt32 = 48_000

  /// Longest distance of key frames that the stream's segments want, in nanoseconds. Nil if distances do not matter.
  var keyFrameDistance: Int64?
  private let negotiation: Negotiation
  private var publication: Publication
  private var clocks = SenderClocks()
  private var receivers: [UInt32: RTPReceiver] = [:]
  /// The newest sender of each track. Earlier ones are over: a sender may take another number (RFC 3550 §8.2).
  private var current: [TrackID: UInt32] = [:]
  private var videos: [TrackID: Video] = [:]
  private var audios: [TrackID: Audio] = [:]
  private var arrivals: ArrivalLog
  private var estimate: BitRateEstimate
  private var events: [RTPReceiver.Event] = []
  private var (fedBack, reported): (MonotonicTime, MonotonicTime)
  /// The sender said that it ends.
  private(set) var hasEnded = false

  init(_ negotiation: Negotiation, reading: ClockReading, now: MonotonicTime) {
    self.negotiation = negotiation
    publication = Publication(reading: reading)
    arrivals = ArrivalLog(origin: now)
    estimate = BitRateEstimate(now: now)
    (fedBack, reported) = (now, now)
    publication.receive(
      PublicationMetadata(
        hasVideo: negotiation.tracks.contains { $0.kind == .video },
        hasAudio: negotiation.tracks.contains { $0.kind == .audio }))
    for track in negotiation.tracks { publication.receive(TrackStatement(), of: track.id) }
  }

  var encoder: String { publication.encoder }
  private var figures: LinkFigures {
    receivers.values.reduce(into: LinkFigures()) { sum, one in
      sum.received &+= one.received
      sum.lost &+= one.missed
      sum.retransmitted &+= one.repaired
      sum.dropped &+= one.dropped
    }
  }

  /// Whether a packet of this sender is looked at: senders are counted before anything is kept of them.
  func takes(source: UInt32) -> Bool { receivers[source] != nil || receivers.count < WebRTCLimits.sources }

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
    if receivers[packet.source] == nil {
      // A new sender begins with media: one that only pads is none of a track.
      guard packet.payload.readableBytes > 0, takes(source: packet.source), let track = track(of: packet) else {
        return false
      }
      receivers[packet.source] = RTPReceiver(track, source: packet.source)
      if current.updateValue(packet.source, forKey: track.id) != nil { beginAgain(track.id) }
    }
    guard let track = receivers[packet.source]?.track, track.format.payloadType == packet.payloadType,
      current[track.id] == packet.source
    else { return false }
    receivers[packet.source]?.receive(packet, now: now, to: &events)
    try passOn(track, now, to: &out)
    return packet.payload.readableBytes > 0
  }

  /// Another sender's timestamps begin at a random value, and its frames with a key frame.
  private mutating func beginAgain(_ id: TrackID) {
    if negotiation.tracks.contains(where: { $0.id == id && $0.kind == .video }) {
      videos[id, default: Video()].lastTimestamp = nil
      videos[id, default: Video()].isBroken = true
    }
    audios[id]?.next = nil
    clocks.forget(id)
  }

  /// The track that a new sender belongs to: by its name (mid), by the offer, by its payload type (RFC 9143 §9.2).
  private func track(of packet: RTPPacket) -> Negotiation.Track? {
    let fitting = negotiation.tracks.filter { $0.format.payloadType == packet.payloadType }
    if let mid = packet.value(of: negotiation.midNumber) {
      let name = String(buffer: mid)
      if let named = fitting.first(where: { $0.mid == name }) { return named }
    }
    return fitting.first { $0.sources.contains(packet.source) } ?? (fitting.count == 1 ? fitting.first : nil)
  }

  mutating func receive(rtcp datagram: ByteBuffer, now: MonotonicTime, to out: inout [PublicationAction]) {
    for event in RTCPReader.read(datagram) {
      switch event {
      case .report(let report):
        guard let track = receivers[report.source]?.track, current[track.id] == report.source else { continue }
        receivers[report.source]?.receive(report, now: now)
        clocks.receive(track.id, wall: report.nanoseconds, timestamp: report.timestamp)
        if let time = clocks.timeOfDay { publication.receive(timeOfDay: time, to: &out) }
      case .bye(let source):
        guard let track = receivers[source]?.track, current[track.id] == source else { continue }
        hasEnded = hasEnded || track.kind == .video
      // weir sends nothing to a publisher.
      case .again, .keyFrame, .estimate: break
      }
    }
  }

  private mutating func passOn(
    _ track: Negotiation.Track, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    let batch = events
    events.removeAll(keepingCapacity: true)
    for event in batch {
      switch event {
      case .frame(let frame): try receive(frame, track, now, to: &out)
      case .audio(let packet, let lost): try receive(packet, lost: lost, track, now, to: &out)
      case .lostFrame:
        videos[track.id, default: Video()].isBroken = true
        out.append(.lost(.video))
      }
    }
    if !clocks.isRunning {
      clocks.isRunning = out.contains { if case .event(.sample) = $0 { true } else { false } }
    }
  }

  // MARK: video

  private mutating func receive(
    _ frame: RTPFrame, _ track: Negotiation.Track, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    var video = videos[track.id] ?? Video()
    defer { videos[track.id] = video }
    if let fault = track.coding.type.fault(inFrame: frame.payload) {
      video.isBroken = true
      return publication.leaveOut(unreadable: fault, track.coding, track.id, now: now, to: &out)
    }
    if video.firstAsked != nil {
      video.unanswered = (video.unanswered?.since ?? now, (video.unanswered?.count ?? 0) + 1)
    }
    if let record = record(of: frame, track, &video, now, to: &out) {
      video.isConfigured = try publication.configure(track.id, track.coding, record: record, now: now, to: &out)
    }
    guard frame.payload.readableBytes > 0, video.isConfigured else { return }
    if let last = video.lastTimestamp, Int32(bitPattern: frame.timestamp &- last) <= 0 {
      // Reordered frames have no decode times in RTP.
      return out.append(.lost(.video))
    }
    video.lastTimestamp = frame.timestamp
    if frame.isKey {
      video.noteKeyFrame(now)
      publication.canRead(track.id, to: &out)
      if video.isTold, !videos.contains(where: { $0 != track.id && $1.isTold }) {
        out.append(.withdraw(.ignoresRequests))
      }
      video.isTold = false
    }
    let time = clocks.time(track.id, .video, frame.timestamp, hertz: track.format.clock, now: now)
    publication.receive(
      WireUnit(track: track.id, coding: track.coding, time: time, payload: frame.payload), now: now, to: &out)
  }

  /// A configuration that begins with the frame. Parameter sets that say the same again are none.
  private mutating func record(
    of frame: RTPFrame, _ track: Negotiation.Track, _ video: inout Video, _ now: MonotonicTime,
    to out: inout [PublicationAction]
  ) -> ByteBuffer? {
    do {
      if track.coding == .h264 {
        guard try video.parameters.receive(frame.parameterSets), let codec = video.parameters.codec else { return nil }
        return ByteBuffer(bytes: codec.record())
      }
      guard frame.isKey, !video.isConfigured else { return nil }
      return ByteBuffer(bytes: try Codec(track.coding, stream: frame.payload).record())
    } catch {
      if video.refusal != error.reason {
        publication.leaveOut(
          codec: "\(track.coding.name) (\(PeerText.printable(error.reason, limit: 200)))", of: .video, track.id,
          isAlone: negotiation.tracks.count { $0.kind == .video } == 1, now: now, to: &out)
      }
      video.refusal = error.reason
      return nil
    }
  }

  // MARK: audio

  private mutating func receive(
    _ packet: RTPPacket, lost: Int, _ track: Negotiation.Track, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    var audio = audios[track.id] ?? Audio()
    defer { audios[track.id] = audio }
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
    for source in receivers.keys.sorted() {
      guard let track = receivers[source]?.track, current[track.id] == source else { continue }
      let missing = receivers[source]?.tick(now: now, to: &events) ?? []
      try passOn(track, now, to: &out)
      feedback.again(missing, of: source)
      if track.kind == .video, track.asksForKeyFrames, wantsKeyFrame(track.id, now) {
        feedback.keyFrame(of: source)
        tellIfIgnored(track.id, now, to: &out)
      }
    }
    if now &- reported >= Self.reportPause {
      reported = now
      if negotiation.feedbackNumber == nil {
        let sources = receivers.filter { $0.value.track.takesEstimates }.map(\.key)
        if !sources.isEmpty { feedback.estimate(estimate.next(figures, now: now), of: sources.sorted()) }
      }
    }
    var datagrams = feedback.bytes.readableBytes > isEmpty || reported == now ? [feedback.bytes] : []
    if now &- fedBack >= Self.feedbackPause, let source = receivers.keys.min(), let body = arrivals.feedback() {
      fedBack = now
      var transport = RTCPWriter()
      transport.arrivals(body, of: source)
      datagrams.append(transport.bytes)
    }
    try publication.tick(now: now, to: &out)
    return datagrams
  }

  private mutating func reports(_ now: MonotonicTime) -> [RTCPWriter.Reception] {
    receivers.keys.sorted().compactMap { receivers[$0]?.reception(now: now) }
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

  /// Whether to ask for a key frame now: there is none, frames were lost, the stream wants one, or a segment would become too
  /// long.
  private mutating func wantsKeyFrame(_ id: TrackID, _ now: MonotonicTime) -> Bool {
    var video = videos[id] ?? Video()
    defer { videos[id] = video }
    let isDue = video.isDue(keyFrameDistance, now)
    guard video.isBroken || video.isWanted || isDue,
      video.asked.map({ now &- $0 >= Self.pause }) ?? true
    else { return false }
    video.asked = now
    video.firstAsked = video.firstAsked ?? now
    return true
  }
}

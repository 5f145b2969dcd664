internal import Base
internal import FMP4
internal import Logging
internal import NIOCore
internal import Publishing

/// A viewer by WebRTC: the answer to its offer, its connection, and what it gets. Used on the listener's event loop.
final class WebRTCViewer: RelayViewer {
  private enum End {
    /// It is gone, or wanted to go.
    case left
    /// The server ends it, and says why.
    case ended(String)
  }

  private final class Reference {
    weak var viewer: WebRTCViewer?
    init(_ viewer: WebRTCViewer) { self.viewer = viewer }
  }

  /// Bytes that a viewer may get in a second, at least; so many times the stream's own; and at once.
  private static let (leastRate, headroom, burst): (Int64, Int64, Int64) = (1_000_000, 3, 64 * 1024)
  /// Bytes that are sent again at once, at most, and the part of the stream's rate for it.
  private static let (repeatBurst, repeatShare): (Int64, Int64) = (128 * 1024, 2)
  /// Bytes of a packet beside its payload: its header, when it was sent, and the tag of its encryption.
  private static let headAndTag = 28 + SendTime.bytes
  private static let reportPause: Int64 = 1_000_000_000
  /// From 1900 to 1970, in seconds.
  private static let epoch: Int64 = 2_208_988_800

  let transport: WebRTCTransport
  private let directory: any WebRTCDirectory
  private let batch: PacketBatch
  private let relay: StreamRelay
  private let negotiation: ViewerNegotiation
  private let watched: WatchedMedia
  private var video: TrackSender?
  /// The video of the stream that it gets; nil for none.
  private var shown: TrackID?
  private var audio: TrackSender?
  /// Of the video.
  private var sendTime: SendTime?
  private var allowance: ByteAllowance
  private var repeats: ByteAllowance
  private var network = ViewerNetwork()
  private var sent = MediaRate()
  private let begunAt: MonotonicTime
  private var reportedAt = MonotonicTime.min
  private var heardAt: MonotonicTime
  private var begunAgainAt = MonotonicTime.min
  private var quality: QualityChoice
  private var isOver = false

  init?(
    _ negotiation: ViewerNegotiation, _ watched: WatchedMedia, _ relay: StreamRelay, peer: String,
    in directory: any WebRTCDirectory
  ) {
    guard
      let transport = WebRTCTransport(watched.stream.name, .watching, negotiation.transport, peer: peer, in: directory)
    else { return nil }
    (self.transport, self.directory, self.relay, self.negotiation, self.watched) =
      (transport, directory, relay, negotiation, watched)
    batch = directory.batch
    let now = directory.clock.monotonic()
    (begunAt, heardAt, quality) = (now, now, QualityChoice(now))
    allowance = ByteAllowance(Self.burst, now: now)
    repeats = ByteAllowance(Self.repeatBurst, now: now)
    for line in negotiation.lines {
      guard let source = relay.sources[line.kind] else { continue }
      let sender = TrackSender(
        payloadType: line.format.payloadType, source: source, needsKeyFrame: line.kind == .video)
      if line.kind == .video { (video, shown, sendTime) = (sender, line.track, line.sendTime) } else { audio = sender }
    }
    transport.owner = self
  }

  private var now: MonotonicTime { directory.clock.monotonic() }

  /// False if its stream has ended.
  func begin() -> Bool {
    guard relay.add(self) else { return false }
    // The place is held by this viewer, so it must not hold it.
    let bound = NIOLoopBound(Reference(self), eventLoop: directory.loop)
    let loop = directory.loop
    watched.place.whenRevoked {
      loop.execute { bound.value.viewer?.end(because: "its place is given away, or an administrator has ended it") }
    }
    return true
  }

  var answer: WebRTCAnswer {
    let text = ViewerAnswer(
      negotiation: negotiation, agent: transport.agent, fingerprint: directory.identity.fingerprint,
      candidates: directory.candidates, session: transport.number, sources: relay.sources
    ).text
    return WebRTCAnswer(
      description: text, session: transport.id, entityTag: transport.entityTag, omissions: negotiation.omissions,
      replacements: negotiation.replacements)
  }

  // MARK: what it gets

  /// The tracks of the stream may be others.
  func check(_ now: MonotonicTime) {
    if audio != nil, relay.audio.flatMap({ encoding(of: $0) }) == nil {
      return end(.ended("the audio of the stream is another"))
    }
    guard var sender = video else { return }
    let track = relay.video(shown)
    if let track, let known = encoding(of: track), known.format.payloadType == sender.payloadType { return }
    guard let other = relay.videos.first(where: { encoding(of: $0) != nil }) else {
      let reason = track?.isReordered == true ? "has B-frames now, which cannot be sent by WebRTC" : "is another"
      return end(.ended("the video of the stream \(reason)"))
    }
    show(other, &sender)
    video = sender
  }

  /// How it gets a track; nil if it cannot.
  private func encoding(of track: RelayTrack) -> ViewerNegotiation.Encoding? {
    track.isSent ? negotiation.encoding(track.coding) : nil
  }

  /// Goes over to another video of the stream.
  private func show(_ track: RelayTrack, _ sender: inout TrackSender) {
    guard let encoding = encoding(of: track) else { return }
    directory.logger.debug(
      "WebRTC: a viewer of \(transport.stream) at \(transport.peer) gets \(track.description.summary) from now on")
    shown = track.id
    sender.move(to: encoding.format.payloadType)
    relay.serveSoon()
  }

  /// The videos that it can get, and the place of the one that it gets.
  private func choice(_ now: MonotonicTime) -> (tracks: [RelayTrack], videos: [QualityChoice.Video], shown: Int?) {
    let tracks = relay.videos.filter { encoding(of: $0) != nil }
    let videos = tracks.map {
      QualityChoice.Video(bytesPerSecond: relay.bytesPerSecond(of: $0.id), isFresh: $0.isFresh(now))
    }
    return (tracks, videos, tracks.firstIndex { $0.id == shown })
  }

  /// Goes to a better video after a long calm, or to another one where its own has stopped: that of a worker that was lost.
  private func reconsider(_ now: MonotonicTime) {
    guard var sender = video, relay.videos.count > 1 else { return }
    let (tracks, videos, place) = choice(now)
    if let better = quality.rise(place, videos, now: now) {
      show(tracks[better], &sender)
    } else if let track = relay.video(shown), track.hasStopped(now) {
      let source = relay.videos.first
      let isLost = track !== source && track.isGone(now) && source?.hasGoneOn(now) == true
      switch QualityChoice.afterStop(of: place, videos, isLost: isLost) {
      case .change(let other): show(tracks[other], &sender)
      case .end: return end(.ended("the video that was made for it does not come any more"))
      case .skip, nil: return
      }
    }
    video = sender
  }

  /// More is there for it than it was given.
  var isBehind: Bool {
    guard transport.isConnected, let track = relay.video(shown) else { return false }
    return video?.hasMore(track.log) ?? false
  }

  var tracks: [TrackID] { [video == nil ? nil : shown, audio == nil ? nil : relay.audio?.id].compactMap { $0 } }

  /// Sends what waits, within its rate. Returns the path, to be flushed; nil if nothing was sent.
  func serve(_ now: MonotonicTime) -> WebRTCPath? {
    guard !isOver, let srtp = transport.srtp, let path = transport.chosen else { return nil }
    var hasSent = false
    if var sender = audio, let log = relay.audio?.log {
      if sender.next == nil || sender.hasLost(log) || sender.lag(log, now: now) > WebRTCLimits.viewerLag {
        sender.begin(log, now: now)
      }
      while path.isWritable, let (packet, outgoing) = sender.take(log) {
        send(packet, outgoing, sender, srtp, path, now)
        hasSent = true
      }
      audio = sender
    }
    if let log = relay.video(shown)?.log, var sender = video.take() {
      hasSent = serveVideo(&sender, log, srtp, path, now) || hasSent
      video = sender
    }
    batch.flush(path)
    return hasSent ? path : nil
  }

  private func serveVideo(
    _ sender: inout TrackSender, _ log: PacketLog, _ srtp: SRTPSession, _ path: WebRTCPath, _ now: MonotonicTime
  ) -> Bool {
    if sender.next == nil { sender.begin(log, now: now) }
    if sender.hasLost(log) || sender.lag(log, now: now) > WebRTCLimits.viewerLag {
      let (tracks, videos, place) = choice(now)
      switch quality.isSlow(place, videos, estimate: heldBackTo, now: now) {
      case .skip: sender.skip(log, now: now)
      case .change(let other):
        // With the next call, from its newest key frame on.
        show(tracks[other], &sender)
        return false
      case .end:
        sender.skip(log, now: now)
        let bound = NIOLoopBound(self, eventLoop: directory.loop)
        directory.loop.execute { bound.value.end(.ended("its connection is too slow for the stream")) }
        return false
      }
    }
    let rate = rate
    allowance.grow(rate, burst: Self.burst + rate / 50, now: now)
    var hasSent = false
    while allowance.bytes > 0, path.isWritable, let (packet, outgoing) = sender.take(log) {
      send(packet, outgoing, sender, srtp, path, now)
      allowance.take(packet.piece.byteCount)
      hasSent = true
    }
    if sender.awaitsKeyFrame { _ = relay.requestKeyFrame(now) }
    return hasSent
  }

  /// Bytes in a second: ahead of the stream, so that it catches up, as far as its network allows.
  private var rate: Int64 {
    let most = max(Self.leastRate, Self.headroom * relay.bytesPerSecond(of: shown))
    return min(most, network.limit ?? most)
  }

  /// What its network carries by its estimate, if it gets less than the stream has.
  private var heldBackTo: Int64? {
    network.limit.flatMap { $0 < relay.bytesPerSecond(of: shown) ? network.estimate : nil }
  }

  private func send(
    _ packet: PacketLog.Packet, _ outgoing: TrackSender.Outgoing, _ sender: TrackSender, _ srtp: SRTPSession,
    _ path: WebRTCPath, _ now: MonotonicTime
  ) {
    let piece = packet.piece
    let isMarked = sender.needsKeyFrame && piece.isLast
    let sendTime = sender.needsKeyFrame ? sendTime : nil
    let header = RTPPacket.headerBytes + (sendTime == nil ? 0 : SendTime.bytes)
    let size = header + piece.byteCount
    func write(_ target: UnsafeMutableRawBufferPointer) {
      let first = 0x8000 | (sendTime == nil ? 0 : 0x1000) | (isMarked ? 0x80 : 0) | UInt16(sender.payloadType)
      target.storeBytes(of: first.bigEndian, as: UInt16.self)
      target.storeBytes(of: outgoing.sequence.bigEndian, toByteOffset: 2, as: UInt16.self)
      target.storeBytes(of: outgoing.timestamp.bigEndian, toByteOffset: 4, as: UInt32.self)
      target.storeBytes(of: sender.source.bigEndian, toByteOffset: 8, as: UInt32.self)
      let body = header + piece.head.count
      sendTime?.write(now, to: UnsafeMutableRawBufferPointer(rebasing: target[RTPPacket.headerBytes..<header]))
      withUnsafeBytes(of: piece.head.bigEndian) {
        UnsafeMutableRawBufferPointer(rebasing: target[header..<body]).copyMemory(
          from: UnsafeRawBufferPointer(rebasing: $0[..<piece.head.count]))
      }
      piece.body.withUnsafeReadableBytes {
        UnsafeMutableRawBufferPointer(rebasing: target[body...]).copyMemory(from: $0)
      }
    }
    sent.add(piece.byteCount)
    if path.takesSeveral {
      batch.add(to: path) { srtp.close(rtp: size, into: &$0, write) }
    } else if let closed = srtp.close(rtp: size, write) {
      path.write(closed)
    }
  }

  // MARK: what it says

  private func sendAgain(_ numbers: [UInt16], _ now: MonotonicTime) {
    guard let srtp = transport.srtp, let path = transport.chosen, let sender = video,
      let log = relay.video(shown)?.log
    else { return }
    let rate = min(max(Self.leastRate, relay.bytesPerSecond(of: shown)), network.limit ?? .max) / Self.repeatShare
    repeats.grow(rate, burst: Self.repeatBurst, now: now)
    for number in numbers where repeats.bytes > 0 && path.isWritable {
      guard let (packet, outgoing) = sender.again(number, log) else { continue }
      send(packet, outgoing, sender, srtp, path, now)
      repeats.take(packet.piece.byteCount &+ Self.headAndTag)
      if network.limit != nil { allowance.take(packet.piece.byteCount) }
    }
    batch.flush(path)
    path.flush()
  }

  /// Its decoder needs a key frame: a new one, or, where the publisher makes none, the newest that is kept.
  private func beginAgain(_ now: MonotonicTime) {
    guard relay.requestKeyFrame(now) == .impossible, video?.awaitsKeyFrame == false,
      let log = relay.video(shown)?.log, begunAgainAt == .min || now &- begunAgainAt >= WebRTCLimits.keyFramePause
    else { return }
    begunAgainAt = now
    video?.begin(log, now: now)
    relay.serveSoon()
  }

  // MARK: time

  func tick(_ now: MonotonicTime) {
    guard !isOver else { return }
    sent.tick(now)
    guard transport.isConnected else {
      if now &- begunAt >= WebRTCLimits.connectDeadline {
        return end(.ended("no connection within \(WebRTCLimits.connectDeadline / 1_000_000_000) s"))
      }
      return transport.tick()
    }
    if now &- max(heardAt, transport.consentedAt) >= WebRTCLimits.viewerSilence {
      return end(.ended("nothing came any more"))
    }
    guard reportedAt == .min || now &- reportedAt >= Self.reportPause else { return }
    reportedAt = now
    guard watched.mayWatch() else { return end(.ended("its token has expired or was revoked")) }
    reconsider(now)
    guard !isOver else { return }
    let sendings = sendings(now)
    transport.send(rtcp: RTCPWriter(sendings, name: ViewerAnswer.name).bytes)
    if let sending = sendings.first, sending.source == video?.source {
      network.sentReport(clock: UInt32(truncatingIfNeeded: sending.clock >> 16), at: now)
    }
  }

  private func sendings(_ now: MonotonicTime) -> [RTCPWriter.Sending] {
    let wall = directory.clock.reading.wallTime(at: now).nanoseconds
    let seconds = UInt64(clamping: wall / 1_000_000_000 + Self.epoch)
    let fraction = (UInt64(clamping: wall % 1_000_000_000) << 32) / 1_000_000_000
    return [(MediaKind.video, video), (.audio, audio)].compactMap { kind, sender in
      guard let sender, sender.packets > 0 else { return nil }
      return RTCPWriter.Sending(
        source: sender.source, clock: seconds << 32 | fraction,
        timestamp: relay.timestamp(kind, now: now) &+ sender.delay, packets: sender.packets, bytes: sender.bytes)
    }
  }

  // MARK: the end

  func end(because reason: String) { end(.ended(reason)) }

  private func end(_ cause: End) {
    guard !isOver else { return }
    isOver = true
    var told: String?
    if case .ended(let reason) = cause {
      told = reason
      let sendings = sendings(now)
      if transport.isConnected, !sendings.isEmpty {
        var goodbye = RTCPWriter(sendings, name: ViewerAnswer.name)
        goodbye.bye([video, audio].compactMap { $0?.source }, because: reason)
        transport.send(rtcp: goodbye.bytes)
      }
      directory.logger.debug("WebRTC: a viewer of \(transport.stream) at \(transport.peer) is ended: \(reason)")
    }
    transport.close(because: told)
    relay.remove(self)
  }
}

extension WebRTCViewer: WebRTCTransportOwner {
  func secured() {
    heardAt = now
    guard watched.place.connected() else { return end(.ended("the server has as many viewers as it may have")) }
    relay.serveSoon()
  }

  /// It sends nothing but reports.
  func takes(source: UInt32) -> Bool { false }
  func receive(rtp clear: ByteBuffer, now: MonotonicTime) {}

  func receive(rtcp clear: ByteBuffer, now: MonotonicTime) {
    heardAt = now
    for event in RTCPReader.read(clear) where !isOver {
      switch event {
      case .again(let numbers, let source):
        guard source == video?.source else { break }
        network.asks(for: numbers)
        sendAgain(numbers, now)
      case .keyFrame(let source): if source == video?.source { beginAgain(now) }
      case .estimate(let bits):
        network.take(
          estimate: Int64(clamping: bits / 8), sent: sent.bytesPerSecond, stream: relay.bytesPerSecond(of: shown))
      case .received(let reception): if reception.source == video?.source { network.take(reception, now: now) }
      case .report, .bye: break
      }
    }
  }

  func failed(_ fault: WebRTCTransport.Fault) {
    switch fault {
    case .lost: end(.left)
    case .broken(let reason): end(.ended(reason))
    }
  }

  func finish() { end(.left) }
}

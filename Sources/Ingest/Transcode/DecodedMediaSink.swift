internal import Base
internal import FMP4
internal import Logging
internal import NIOCore
internal import Publishing
internal import Synchronization

/// Stands between a publication and its stream. Media in a codec that outputs do not carry is decoded and encoded again,
/// by a worker for each track: audio as the settings say, video (VP8) as H.264 in its own size. The stream sees tracks that it can serve, with the publisher's times. Everything else
/// passes at once. Only the start and the end wait: for the configuration of the new media, and for its last frames.
final class DecodedMediaSink: MediaSink {
  private let inner: any MediaSink
  private let output: AudioSpecification
  private let launcher: WorkerLauncher
  private let room: WorkerRoom
  /// As `MediaSink.anonymousHost`.
  let anonymousHost: String?
  private let logger: Logger
  private let state = Mutex(State())

  private struct State {
    var decoders: [TrackID: Decoder] = [:]
    /// Decoders of tracks that have ended, until they have, too.
    var leaving: [Int: Decoder] = [:]
    var decodersSoFar = 0
    /// The publisher's newest tracks, and those that the stream was given last.
    var tracks: [TrackDescription] = []
    var given: [TrackDescription] = []
    /// The start of a publication, while it waits. Nil once it has begun, and before its tracks are known.
    var start: HeldStart?
    var hasBegun = false
    /// Bytes that the publication's protocol holds, and those that the stream was told of: with the start's, and those that wait for
    /// decoders.
    var (held, told) = (0, 0)
    /// Bytes that wait for decoders.
    var waiting: Int {
      decoders.values.reduce(leaving.values.reduce(0) { $0 &+ $1.transcoder.waitingBytes }) {
        $0 &+ $1.transcoder.waitingBytes
      }
    }
    /// The end, while the last frames are awaited.
    var ending: EndReason?
    var verdict = SinkVerdict.accepted
    /// The track that was left out and told of, and the warning.
    var refused: (track: TrackDescription, warning: PublicationWarning)?
    /// The stream was given the end.
    var hasEnded = false
  }

  /// Of any size, at a bit rate that suits it.
  private static let video = RungSpecification(shortSide: 4320, bitRate: 20_000_000, smallSource: .encoded)

  private struct Decoder {
    let number: Int
    /// Of the room that it has.
    let kind: MediaKind
    let transcoder: LadderTranscoder
    var source: TrackDescription
    /// The track that it makes. Nil before the worker has stated it.
    var output: TrackDescription?
    /// The loss of its worker was told.
    var isLost = false
    /// Frames that were left out and told.
    var dropped = 0
    /// The decode time of the frame behind the last of them. Nil if none was left out for a while.
    var lastDrop: Int64?
  }

  /// Seconds of media without a hole, after which a decoder keeps up again.
  static let punctual: Int64 = 30

  init(
    _ inner: any MediaSink, as output: AudioSpecification, launcher: WorkerLauncher, room: WorkerRoom, logger: Logger
  ) {
    self.inner = inner
    self.output = output
    self.launcher = launcher
    self.room = room
    anonymousHost = inner.anonymousHost
    self.logger = logger
  }

  var keyFrameDistance: MediaTime? { inner.keyFrameDistance }
  var passesSamplesOn: Bool { inner.passesSamplesOn }
  func connected() { inner.connected() }
  var mostHeldAtStart: Int { inner.mostHeldAtStart }
  func lost(_ kind: MediaKind) { inner.lost(kind) }
  func warn(_ warning: PublicationWarning) { inner.warn(warning) }
  func withdraw(_ warning: PublicationWarning) { inner.withdraw(warning) }
  func measured(_ figures: LinkFigures) { inner.measured(figures) }
  func carries(_ event: InBandEvent) {
    state.withLock { state in
      guard state.start != nil else { return inner.carries(event) }
      state.start?.hold(event)
    }
  }

  func holds(_ bytes: Int) {
    state.withLock { state in
      state.held = bytes
      tellHeld(&state)
    }
  }

  /// Tells the stream what is held, in steps.
  private func tellHeld(_ state: inout State) {
    let bytes = state.held &+ (state.start?.bytes ?? 0) &+ state.waiting
    guard (bytes &- state.told).magnitude >= PublicationLimits.heldStep else { return }
    state.told = bytes
    inner.holds(bytes)
  }

  // MARK: From the publisher

  func receive(_ event: MediaEvent) -> SinkVerdict {
    state.withLock { state in
      guard case .accepted = state.verdict else { return state.verdict }
      switch event {
      case .tracks(let tracks): use(tracks, &state)
      case .sample(let sample):
        if let decoder = state.decoders[sample.track] {
          decode(sample, decoder, &state)
        } else {
          pass(event, &state)
        }
      case .discontinuity:
        for decoder in state.decoders.values { decoder.transcoder.drain() }
        pass(event, &state)
      case .clock, .progress: pass(event, &state)
      case .end(let reason): end(reason, &state)
      }
      return state.verdict
    }
  }

  private func use(_ tracks: [TrackDescription], _ state: inout State) {
    state.tracks = tracks
    // What is left out now is told of below.
    if let refused = state.refused, !tracks.contains(refused.track) {
      inner.withdraw(refused.warning)
      state.refused = nil
    }
    for (id, decoder) in state.decoders where !tracks.contains(where: { $0.id == id && !$0.codec.id.isCarried }) {
      dismiss(decoder, &state)
    }
    for track in tracks where !track.codec.id.isCarried { decode(track, &state) }
    if let refused = state.refused, state.decoders[refused.track.id] != nil {
      inner.withdraw(refused.warning)
      state.refused = nil
      // Another one may still be left out, which was not told beside it.
      for track in tracks where !track.codec.id.isCarried && state.decoders[track.id] == nil { decode(track, &state) }
    }
    if !state.hasBegun, state.start == nil, !state.decoders.isEmpty {
      state.start = HeldStart(now: .now(), most: inner.mostHeldAtStart)
    }
    if state.start == nil {
      giveTracks(&state)
    } else {
      pass(.tracks(tracks), &state)
    }
  }

  private func decode(_ track: TrackDescription, _ state: inout State) {
    if let known = state.decoders[track.id] {
      if known.source != track { known.transcoder.use(track) }
      state.decoders[track.id]?.source = track
      return
    }
    guard state.decoders.count < TranscodeLimits.decodedTracks else {
      return refuse("weir decodes \(TranscodeLimits.decodedTracks) tracks of a publication at a time", track, &state)
    }
    if let refusal = room.take(track.kind, anonymousHost) { return refuse(refusal.description, track, &state) }
    let (id, number) = (track.id, state.decodersSoFar)
    do {
      // It keeps this sink until it has ended.
      let aim = track.kind == .audio ? TranscodeAim.audio(output) : .video([Self.video])
      let transcoder = try LadderTranscoder(aim: aim, launcher: launcher, logger: logger) { events in
        self.receive(events, of: id, number)
      }
      state.decodersSoFar += 1
      state.decoders[id] = Decoder(number: number, kind: track.kind, transcoder: transcoder, source: track)
      transcoder.use(track)
    } catch {
      room.giveBack(track.kind, anonymousHost)
      refuse("it cannot be decoded: \(error)", track, &state)
    }
  }

  private func refuse(_ reason: String, _ track: TrackDescription, _ state: inout State) {
    guard state.refused == nil else { return }
    let warning = PublicationWarning.leftOutForm(track.kind, "\(track.codec.name): \(reason)")
    state.refused = (track, warning)
    logger.warning("\(warning.description)")
    inner.warn(warning)
  }

  private func decode(_ sample: Sample, _ decoder: Decoder, _ state: inout State) {
    _ = decoder.transcoder.feed(sample, most: mostWaiting(for: decoder, state))
    tellHeld(&state)
    tellDropped(sample.track, at: sample.decodeTime, &state)
    if !decoder.isLost, decoder.transcoder.status.worker == .waiting {
      state.decoders[sample.track]?.isLost = true
      inner.warn(.decoderLost(decoder.source.codec.name))
    }
    beginIfReady(&state)
  }

  /// The most bytes that may wait for a decoder. Those of all decoders of the publication are bounded as its start is: a publication
  /// whose workers are late loses frames, and does not end.
  private func mostWaiting(for decoder: Decoder, _ state: State) -> Int {
    let waiting = state.waiting
    guard waiting > PublicationLimits.heldStep else { return .max }
    let own = decoder.transcoder.waitingBytes
    return max(PublicationLimits.heldStep, min(TranscodeLimits.backlogBytes, inner.mostHeldAtStart) &- waiting &+ own)
  }

  /// Tells of frames that were left out before a decode time: they are holes in the times. And of the end of that, when there were
  /// none for a while. Without a time the track has ended.
  private func tellDropped(_ id: TrackID, at time: Int64?, _ state: inout State) {
    guard let decoder = state.decoders[id] else { return }
    let dropped = decoder.transcoder.status.droppedFrames
    guard dropped > decoder.dropped else {
      guard let time, let last = decoder.lastDrop else { return }
      let ticks = Int64(decoder.source.timescale) &* Self.punctual
      if (time &- last).magnitude >= ticks.magnitude { keepsUp(id, &state) }
      return
    }
    state.decoders[id]?.dropped = dropped
    state.decoders[id]?.lastDrop = time
    for _ in decoder.dropped..<dropped { inner.lost(decoder.source.kind) }
    inner.warn(.decoderLate(decoder.source.codec.name))
  }

  /// Withdraws the warning that a decoder was late, unless it is true of another one of its codec.
  private func keepsUp(_ id: TrackID, _ state: inout State) {
    guard let codec = state.decoders[id]?.source.codec.name else { return }
    state.decoders[id]?.lastDrop = nil
    let isTrue = state.decoders.values.contains { $0.lastDrop != nil && $0.source.codec.name == codec }
    if !isTrue { inner.withdraw(.decoderLate(codec)) }
  }

  /// Counts frames that the stream does not get.
  private func lose(_ frames: Int, _ kind: MediaKind, _ state: State) {
    guard frames > 0, !state.hasEnded, case .accepted = state.verdict else { return }
    for _ in 0..<frames { inner.lost(kind) }
  }

  private func dismiss(_ decoder: Decoder, _ state: inout State) {
    if decoder.lastDrop != nil { keepsUp(decoder.source.id, &state) }
    state.decoders[decoder.source.id] = nil
    state.leaving[decoder.number] = decoder
    if decoder.isLost { inner.withdraw(.decoderLost(decoder.source.codec.name)) }
    decoder.transcoder.finish()
  }

  // MARK: From the decoders

  /// Takes the output of a decoder, on its thread.
  private func receive(_ events: [TranscodeEvent], of id: TrackID, _ number: Int) {
    state.withLock { state in
      for event in events {
        switch event {
        case .track(_, let track): give(track, of: id, number, &state)
        case .frame(_, let sample): give(sample, of: id, number, &state)
        // What is lost is a gap in the times.
        case .lost: break
        case .ended: ended(id, number, &state)
        }
      }
    }
  }

  private func give(_ track: TrackDescription, of id: TrackID, _ number: Int, _ state: inout State) {
    guard state.decoders[id]?.number == number else { return }
    state.decoders[id]?.output = track
    if state.start == nil { giveTracks(&state) } else { beginIfReady(&state) }
  }

  private func give(_ sample: Sample, of id: TrackID, _ number: Int, _ state: inout State) {
    guard let decoder = state.decoders[id], decoder.number == number, let track = decoder.output else {
      // Its track has ended or was replaced before the worker was done with it.
      if let left = state.leaving[number] { lose(1, left.source.kind, state) }
      return
    }
    if decoder.isLost {
      state.decoders[id]?.isLost = false
      inner.withdraw(.decoderLost(decoder.source.codec.name))
    }
    var sample = sample
    if track.kind == .audio { sample.duration = track.sampleDuration }
    pass(.sample(sample), &state)
  }

  private func ended(_ id: TrackID, _ number: Int, _ state: inout State) {
    if let decoder = state.leaving.removeValue(forKey: number) {
      room.giveBack(decoder.kind, anonymousHost)
      lose(decoder.transcoder.status.droppedFrames - decoder.dropped, decoder.source.kind, state)
    }
    if let decoder = state.decoders[id], decoder.number == number {
      room.giveBack(decoder.kind, anonymousHost)
      tellDropped(id, at: nil, &state)
      state.decoders[id] = nil
    }
    if let reason = state.ending, state.decoders.isEmpty { giveEnd(reason, &state) }
  }

  // MARK: To the stream

  private func pass(_ event: MediaEvent, _ state: inout State) {
    guard state.start != nil else { return forward(event, &state) }
    state.start?.hold(event)
    tellHeld(&state)
    beginIfReady(&state)
  }

  private func forward(_ event: MediaEvent, _ state: inout State) {
    if case .tracks = event { state.hasBegun = true }
    guard case .accepted = state.verdict, case .closed(let reason) = inner.receive(event) else { return }
    state.verdict = .closed(reason)
    for decoder in state.decoders.values { dismiss(decoder, &state) }
  }

  /// Gives the stream the tracks that it can have now, if they differ from those that it has.
  private func giveTracks(_ state: inout State) {
    let tracks = served(state.tracks, state)
    guard !tracks.isEmpty, tracks != state.given else { return }
    state.given = tracks
    forward(.tracks(tracks), &state)
  }

  /// The publisher's tracks with those in place that are made of them.
  private func served(_ tracks: [TrackDescription], _ state: State) -> [TrackDescription] {
    tracks.compactMap { source in
      if source.codec.id.isCarried { return source }
      var track = state.decoders[source.id]?.output
      track?.language = source.language
      track?.role = source.role
      return track
    }
  }

  private func beginIfReady(_ state: inout State) {
    guard let start = state.start else { return }
    let isReady = state.decoders.values.allSatisfy { $0.output != nil }
    guard isReady || start.isOver(now: .now()), !served(state.tracks, state).isEmpty else { return }
    begin(start, &state)
  }

  private func begin(_ start: HeldStart, _ state: inout State) {
    state.start = nil
    tellHeld(&state)
    for event in start.events {
      switch event {
      case .media(.tracks(let tracks)):
        let tracks = served(tracks, state)
        guard !tracks.isEmpty, tracks != state.given else { continue }
        state.given = tracks
        forward(.tracks(tracks), &state)
      case .media(let event): forward(event, &state)
      case .inBand(let event): inner.carries(event)
      }
    }
  }

  private func end(_ reason: EndReason, _ state: inout State) {
    switch reason {
    case .finished, .connectionLost, .failed:
      guard !state.decoders.isEmpty else { return giveEnd(reason, &state) }
      state.ending = reason
      for decoder in state.decoders.values { decoder.transcoder.finish() }
    case .replaced, .shutdown:
      for decoder in state.decoders.values { dismiss(decoder, &state) }
      giveEnd(reason, &state)
    }
  }

  private func giveEnd(_ reason: EndReason, _ state: inout State) {
    if let start = state.start { begin(start, &state) }
    forward(.end(reason), &state)
    state.hasEnded = true
  }
}

package import Base
package import FMP4
package import Logging
package import NIOCore

/// One publication of any protocol. Configurations, video frames and audio frames with the publisher's times go in;
/// media events come out. The start is held back until the announced tracks are there (`TrackDiscovery`). All times are
/// put on one timeline on which the earliest sample is 0. Parameter changes are sent at their place among the samples.
package struct Publication {
  /// Causes that are logged once.
  package enum Cause: Hashable {
    case damagedVideo, damagedAudio, earlyAudio, stepBack, farPresentation, clocksDiffer, clockDrifts, clockIsOff
    case fallsBehind, noConfiguration(MediaKind), wrongTime(MediaKind)
  }

  enum State {
    case gathering
    /// `origin` is the timeline's time of media time 0. Audio before `audioFloor` precedes the first video frame.
    case open(origin: Int64, audioFloor: Int64)
  }

  /// Ticks per second of the protocol's times of video, and whether they are those at which pictures were taken.
  private let wire: (hertz: UInt32, isCaptured: Bool)
  var state = State.gathering
  /// It has not begun: its media waits.
  package var awaitsStart: Bool { if case .gathering = state { true } else { false } }
  package var judge = TimestampJudge()
  var timeline = Timeline()
  /// The timeline has broken at this place, and what follows can still be decoded: that is told where players can begin.
  var untoldBreak: Int64?
  var gate = TrackDiscovery(
    announcedWait: PublicationLimits.announcedTrackWait, unannouncedWait: PublicationLimits.unannouncedTrackWait)
  /// In order of arrival.
  private(set) var videos: [VideoTrack] = []
  private var audios: [AudioTrack] = []
  /// Languages and roles that the publisher states.
  private var statements: [TrackID: TrackStatement] = [:]
  /// Tracks that the publisher announces by their number. The start waits for them as for announced kinds.
  private var expected: Set<TrackID> = []
  /// Further video tracks of a form that weir does not support.
  private var refused: Set<TrackID> = []
  var unreadable = UnreadableTracks()
  /// The first media that was left out. It becomes the error if no other media comes.
  private var firstLeftOut: WireError?
  package var held = StartupBuffer()
  /// Cues before the start, and times by the publisher's clock that they are for.
  private var heldCues: [(cue: StreamCue, time: Int64?)] = []
  var progress = ProgressClock()
  var arrivals = ArrivalMeter()
  var timesOfDay: TimesOfDay
  /// When the newest media came that waits for the start, and whether none follows.
  private var lastArrival = MonotonicTime.zero
  private var isOver = false
  /// By how many thousandths the publisher's clock is off, as it was told.
  var toldClock: Int?
  var mending = AudioMending()
  private var stated: (rate: Double?, keyFrames: MediaTime?) = (nil, nil)
  private var warned: Set<Cause> = []
  /// Name of the encoder.
  package private(set) var encoder = ""

  package init(reading: ClockReading, wire: UInt32 = 1000, isCaptured: Bool = false) {
    (self.wire, timesOfDay) = ((wire, isCaptured), TimesOfDay(reading: reading))
  }

  /// Time of the next `tick`. Nil if nothing waits.
  package func deadline(after now: MonotonicTime) -> MonotonicTime? {
    let next =
      switch state {
      case .gathering: gate.deadline(after: now)
      case .open: progress.deadline(after: now)
      }
    guard let doubt = judge.deadline else { return next }
    return min(max(doubt, now &+ 1), next ?? .max)
  }

  /// Bytes of media that wait: for the start, or behind a time that may be wrong.
  package var heldBytes: Int { held.byteCount &+ judge.byteCount }

  /// Handles the passing of time: a wait for a track may end. Throws if no supported media has come.
  package mutating func tick(now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) {
    if let doubt = judge.deadline, doubt <= now { decide(to: &out) }
    switch state {
    case .gathering:
      if let firstLeftOut, !has(.video), !has(.audio), gate.isInVain(now: now) { throw firstLeftOut }
      openIfReady(now, to: &out)
    case .open(let origin, _):
      if let anchor = timesOfDay.tick(now: now) { out.append(.event(.clock(anchor))) }
      guard let time = progress.tell(now: now) else { return }
      out.append(.event(.progress(MediaTime(milliseconds: (time &- origin) / 1_000_000))))
    }
  }

  /// The publisher has ended: what waits still counts, behind a time that may be wrong and for tracks that do not come.
  package mutating func finish(to out: inout [PublicationAction]) {
    decide(to: &out)
    isOver = true
    openIfReady(lastArrival, to: &out)
  }

  /// Whether a track of that kind has a configuration.
  private func has(_ kind: MediaKind) -> Bool {
    kind == .video ? videos.contains(where: \.isConfigured) : audios.contains(where: \.isConfigured)
  }

  // MARK: metadata and configurations

  package mutating func receive(_ metadata: PublicationMetadata) {
    if !metadata.encoder.isEmpty { encoder = metadata.encoder }
    for (track, statement) in metadata.tracks { receive(statement, of: track) }
    guard case .gathering = state else { return }
    stated = (metadata.framesPerSecond ?? stated.rate, metadata.keyFrameDistance ?? stated.keyFrames)
    if metadata.isCut ? metadata.hasVideo && metadata.hasAudio : metadata.hasVideo || metadata.hasAudio {
      gate.announce(video: metadata.hasVideo || has(.video), audio: metadata.hasAudio || has(.audio))
    }
  }

  /// Takes the publisher's statement that there is such a track. It applies to the present track at its next sample.
  package mutating func receive(_ statement: TrackStatement, of track: TrackID) {
    if case .gathering = state { expected.insert(track) }
    guard statements[track] != statement else { return }
    statements[track] = statement
    if let index = audios.index(of: track) { audios[index].isUnannounced = true }
  }

  /// The publisher has ended a track, and others of its kind go on.
  package mutating func end(_ track: TrackID, to out: inout [PublicationAction]) {
    unreadable.end(track, to: &out)
    mending.end(track, to: &out)
    drop(track, to: &out)
  }

  private mutating func drop(_ track: TrackID, to out: inout [PublicationAction]) {
    expected.remove(track)
    let (video, audio) = (videos.index(of: track), audios.index(of: track))
    guard (video != nil && videos.count > 1) || (audio != nil && audios.count > 1) else { return }
    if judge.holds(track) { decide(to: &out) }
    judge.forget(track)
    if let video { videos.remove(at: video) }
    if let audio { audios.remove(at: audio) }
    held.forget(track, to: &out)
    if case .open = state { announce([], to: &out) }
  }

  /// Takes the publisher's statement about the colours of a track. Nil withdraws it.
  package mutating func receive(_ color: VideoColor?, of track: TrackID) {
    if let index = video(track) { videos[index].state(color) }
  }

  /// Takes a decoder configuration record of a track. False if weir does not support its form. The track is then missing
  /// until a supported one comes. For the only video it throws instead. An empty one, or a broken one behind a good one of the
  /// same codec, is passed over.
  package mutating func configure(
    _ track: TrackID, _ coding: CodecID, record: ByteBuffer, now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) -> Bool {
    // What came before it is of the former configuration.
    if judge.holds(track), !hasConfiguration(of: track, coding, record) { decide(to: &out) }
    switch coding.kind {
    case .video:
      gate.saw(.video, time: nil, now: now)
      guard let index = video(track) else {
        leaveOutFurtherTrack(of: .video, to: &out)
        return true
      }
      do {
        if try videos[index].configure(coding, record) { held.forget(track, to: &out) }
        refused.remove(track)
        unreadable.take(track, coding, to: &out)
      } catch {
        if unreadable.passesOver(record, error, of: coding, behind: videos[index].codec, to: &out) { return true }
        let reason = "\(coding.name) configuration: \(error)"
        guard videos.contains(where: { $0.id != track && $0.isConfigured }) else {
          throw WireError(.unsupported, reason)
        }
        refuse(track, reason, to: &out)
        return false
      }
    case .audio:
      guard let index = audio(track) else {
        leaveOutFurtherTrack(of: .audio, to: &out)
        return true
      }
      let wasUsable = audios[index].isUsable
      do {
        if try audios[index].configure(coding, record) { held.forget(track, to: &out) }
        gate.saw(.audio, time: nil, now: now)
        unreadable.take(track, coding, to: &out)
      } catch {
        if unreadable.passesOver(record, error, of: coding, behind: audios[index].codec, to: &out) {
          audios[index].isUsable = wasUsable
          return true
        }
        gate.leftOut(.audio, now: now)
        expected.remove(track)
        let reason = "\(coding.name) configuration: \(error)"
        firstLeftOut = firstLeftOut ?? WireError(.unsupported, reason)
        unreadable.add(.leftOutForm(.audio, reason), track, to: &out)
        return false
      }
    }
    return true
  }

  /// Whether a track has the configuration of a record.
  package func hasConfiguration(of track: TrackID, _ coding: CodecID, _ record: ByteBuffer) -> Bool {
    if let index = videos.index(of: track) { return videos[index].repeats(coding, record) }
    return audios.index(of: track).map { audios[$0].repeats(coding, record) } ?? false
  }

  /// Reports media in an unsupported codec, by its name, until its track has another configuration. `isAlone`: no other track of
  /// that kind is accepted.
  package mutating func leaveOut(
    codec: String, of kind: MediaKind, _ track: TrackID? = nil, isAlone: Bool, now: MonotonicTime,
    to out: inout [PublicationAction]
  ) {
    if let track { expected.remove(track) }
    guard unreadable.add(codec: codec, of: kind, track ?? .unnamed(kind), to: &out) else { return }
    firstLeftOut = firstLeftOut ?? .unsupported(codec: codec)
    if isAlone { gate.leftOut(kind, now: now) }
  }

  /// Reports a frame that should state its track's configuration and cannot be read. Those behind it can hardly be decoded.
  package mutating func leaveOut(
    unreadable error: CodecError, _ coding: CodecID, _ track: TrackID, now: MonotonicTime,
    to out: inout [PublicationAction]
  ) {
    out.append(.lost(coding.kind))
    if !has(coding.kind) {
      firstLeftOut = firstLeftOut ?? WireError(.unsupported, error.description)
      gate.leftOut(coding.kind, now: now)
    }
    guard (coding.kind == .video ? video(track) : audio(track)) != nil else {
      return leaveOutFurtherTrack(of: coding.kind, to: &out)
    }
    unreadable.add(.unreadable(coding.kind, error.description), track, to: &out)
    // Where others state it, the next frame that can be read takes it back.
    if !coding.type.isStatedByFrames { unreadable.note(error.description, coding.kind, track, now, to: &out) }
  }

  /// Leaves a further video track out; the others go on.
  private mutating func refuse(_ track: TrackID, _ reason: String, to out: inout [PublicationAction]) {
    refused.insert(track)
    drop(track, to: &out)
    unreadable.add(.leftOutForm(.video, reason), track, to: &out)
  }

  /// Index of a video track, which is added if new. Nil if the limit of tracks is reached.
  private mutating func video(_ id: TrackID) -> Int? {
    if let index = videos.index(of: id) { return index }
    guard videos.count + audios.count < PublicationLimits.tracks else { return nil }
    videos.append(VideoTrack(id, wire: wire.hertz, isCaptured: wire.isCaptured))
    return videos.count - 1
  }

  /// Index of an audio track, which is added if new. Nil if the limit of tracks is reached.
  private mutating func audio(_ id: TrackID) -> Int? {
    if let index = audios.index(of: id) { return index }
    guard videos.count + audios.count < PublicationLimits.tracks else { return nil }
    audios.append(AudioTrack(id))
    return audios.count - 1
  }

  // MARK: media

  /// Takes a video or audio frame. `now` is the arrival time.
  package mutating func receive(_ unit: WireUnit, now: MonotonicTime, to out: inout [PublicationAction]) {
    if judge.passes(unit, now: now) { return take(unit, now, to: &out) }
    passJudged(to: &out)
  }

  /// Takes a unit whose time holds.
  mutating func take(_ unit: WireUnit, _ now: MonotonicTime, to out: inout [PublicationAction]) {
    switch unit.coding.kind {
    case .video: receiveVideo(unit, now, to: &out)
    case .audio: receiveAudio(unit, now, to: &out)
    }
  }

  private mutating func receiveVideo(_ unit: WireUnit, _ now: MonotonicTime, to out: inout [PublicationAction]) {
    if refused.contains(unit.track) { return out.append(.lost(.video)) }
    gate.saw(.video, time: nil, now: now)
    var composition = unit.composition
    if composition.magnitude > PublicationLimits.longestComposition {
      warn(
        .farPresentation,
        "a frame to be shown \(composition / 1_000_000) ms after its decoding is shown at once; check the encoder's clock",
        to: &out)
      composition = 0
    }
    guard let index = videos.index(of: unit.track), videos[index].isConfigured else {
      out.append(.lost(.video))
      let fault = "\(unit.coding.name) came without its parameter sets, in no sequence header and no frame"
      unreadable.note(fault, .video, unit.track, now, to: &out)
      return warn(.noConfiguration(.video), "video before its configuration is dropped", to: &out)
    }
    let access: AccessUnit
    do {
      let found = try videos[index].accessUnit(unit.coding, unit.payload)
      videos[index].watchRefresh(isSync: found?.isSync ?? false, now, to: &out)
      guard let found else {
        if videos[index].lacksKeyFrame { out.append(undecodable(unit.track)) }
        return openIfReady(now, to: &out)
      }
      access = found
    } catch {
      out.append(.lost(.video))
      unreadable.note("\(unit.coding.name): \(error)", .video, unit.track, now, to: &out)
      return warn(.damagedVideo, "a damaged access unit is dropped: \(error)", to: &out)
    }
    let frame = videos[index].frameLength(stated: statedRate(of: unit.track))
    let lag = videos[index].reorderDelay &+ frame
    let (isSync, mayBegin) = (access.isSync, access.isSync && !hasVideo(before: unit.track))
    guard let place = place(unit, length: nil, lag: lag, isSync: isSync, mayBegin: mayBegin, now, to: &out) else {
      return
    }
    unreadable.didRead(unit.track, to: &out)
    if place.isBreak { videos[index].forgetPresentation() }
    // Some senders cannot begin with negative decode times, and show the real reorder delay from the next key frame on.
    let shown = place.time &+ composition
    if videos[index].note(isSync: access.isSync, at: place.time, shown: shown, until: shown &+ frame) {
      timesOfDay.beginAgain(now: now)
    }
    take(
      .video(
        VideoTrack.Unit(
          track: unit.track, time: place.time, composition: composition, isSync: access.isSync,
          isDisposable: access.isDisposable, payload: access.payload, isMoved: place.isMoved)),
      lag: videos[index].reorderDelay &+ frame, now, to: &out)
  }

  /// Whether there is video, or such of a lower number. A loop, because a closure would copy each track for each sample.
  private func hasVideo(before track: TrackID? = nil) -> Bool {
    for index in videos.indices where videos[index].isConfigured {
      if track.map({ videos[index].id < $0 }) ?? true { return true }
    }
    return false
  }

  private mutating func receiveAudio(_ unit: WireUnit, _ now: MonotonicTime, to out: inout [PublicationAction]) {
    let index = audios.index(of: unit.track)
    if let index, !audios[index].isUsable {
      out.append(.lost(.audio))
      return openIfReady(now, to: &out)
    }
    gate.saw(.audio, time: nil, now: now)
    guard let index, audios[index].isConfigured else {
      out.append(.lost(.audio))
      let fault = "\(unit.coding.name) came without its configuration (sequence header)"
      unreadable.note(fault, .audio, unit.track, now, to: &out)
      return warn(.noConfiguration(.audio), "audio before its configuration is dropped", to: &out)
    }
    guard let duration = audios[index].duration(unit.coding, unit.payload), let timescale = audios[index].timescale
    else {
      out.append(.lost(.audio))
      return warn(.damagedAudio, "a damaged \(unit.coding.name) frame is dropped", to: &out)
    }
    // Whole milliseconds, so that times after a break are whole milliseconds if the protocol has only those.
    let length = Int64(duration) &* 1000 / Int64(max(timescale, 1)) &* 1_000_000
    let mayBegin = !hasVideo()
    guard let place = place(unit, length: length, lag: length, isSync: true, mayBegin: mayBegin, now, to: &out) else {
      return
    }
    unreadable.didRead(unit.track, to: &out)
    take(
      .audio(
        AudioTrack.Unit(
          track: unit.track, time: place.time, duration: duration, payload: unit.payload, isMoved: place.isMoved)),
      lag: length, now, to: &out)
  }

  /// Takes a cue for a presentation time by the publisher's clock, in nanoseconds. Nil: for now.
  package mutating func receive(_ cue: StreamCue, at time: Int64?, to out: inout [PublicationAction]) {
    guard case .open(let origin, _) = state, let now = timeline.newest else {
      if heldCues.count < PublicationLimits.heldCues { heldCues.append((cue, time)) }
      return
    }
    var cue = cue
    cue.mediaTime = MediaTime(nanoseconds: (time.map { $0 &+ now.shift } ?? now.time) &- origin)
    out.append(.inBand(.cue(cue)))
  }

  // MARK: the start

  private mutating func take(_ unit: MediaUnit, lag: Int64, _ now: MonotonicTime, to out: inout [PublicationAction]) {
    if case .open(let origin, let audioFloor) = state {
      emit(unit, origin, audioFloor, to: &out)
      return
    }
    gate.saw(unit.kind, time: unit.time, now: now)
    timesOfDay.gather(end: unit.time &+ lag, now: now)
    held.append(unit)
    lastArrival = now
    openIfReady(now, to: &out)
  }

  private mutating func openIfReady(_ now: MonotonicTime, to out: inout [PublicationAction]) {
    guard case .gathering = state, !held.isEmpty else { return }
    let floor = held.firstFrame.map { audioFloor($0) } ?? .min
    let videoStarts = videos.map { held.firstTime(of: $0.id, from: .min) }
    let audioStarts = audios.map { held.firstTime(of: $0.id, from: floor) }
    let (hasVideo, hasAudio) = (videoStarts.contains { $0 != nil }, audioStarts.contains { $0 != nil })
    let isPartial =
      hasVideo && zip(videos, videoStarts).contains { $0.isConfigured && $1 == nil }
      || hasAudio && zip(audios, audioStarts).contains { $0.isConfigured && $0.isUsable && $1 == nil }
      || expected.contains { id in
        !zip(videos.map(\.id) + audios.map(\.id), videoStarts + audioStarts).contains { $0 == id && $1 != nil }
      }
    var decision = gate.decide(videoReady: hasVideo, audioReady: hasAudio, isPartial: isPartial, now: now)
    if decision == .wait, held.isFull || isOver { decision = .open(missing: []) }
    guard case .open(let missing) = decision, let origin = (videoStarts + audioStarts).compactMap(\.self).min() else {
      return
    }
    for kind in missing {
      if unreadable.tellFault(of: kind, to: &out) { continue }
      out.tell(.neverCame(kind))
    }
    state = .open(origin: origin, audioFloor: floor)
    if hasVideo, let distance = stated.keyFrames { out.append(.inBand(.keyFrameDistance(distance))) }
    out.append(.event(.clock(timesOfDay.begin(at: origin, now: now))))
    let begun = zip(videos.map(\.id) + audios.map(\.id), videoStarts + audioStarts)
    announce(begun.compactMap { $1 == nil ? nil : $0 }, to: &out)
    for unit in held.takeAll() { emit(unit, origin, floor, to: &out) }
    for (cue, time) in heldCues { receive(cue, at: time, to: &out) }
    heldCues = []
  }

  /// Earliest time of audio: at most one frame, of audio or video, before the first video frame.
  private func audioFloor(_ first: VideoTrack.Unit) -> Int64 {
    // One audio frame (AAC at 24 kHz: 43 ms) or one frame at 24 frames per second, and a millisecond of rounding.
    first.time &+ first.composition &- 44_000_000
  }

  // MARK: samples

  private mutating func emit(
    _ unit: MediaUnit, _ origin: Int64, _ audioFloor: Int64, to out: inout [PublicationAction]
  ) {
    switch unit {
    case .video(let unit):
      guard let index = videos.index(of: unit.track) else { return out.append(.lost(.video)) }
      // Audio that has changed begins with a key frame.
      if unit.time >= origin, videos[index].isUnannounced || unit.isSync && audios.contains(where: \.hasChanged) {
        announce([unit.track], to: &out)
      }
      // Before the media that may first be listed with them. Frames that are left out say of them, too.
      if let found = videos[index].newCaptions() { out.append(.inBand(.captions(unit.track, found))) }
      guard unit.time >= origin else { return out.append(.inBand(.early(.video))) }
      out.append(.event(.sample(videos[index].sample(unit, origin: origin))))
    case .audio(let unit):
      guard unit.time >= audioFloor, unit.time >= origin else {
        out.append(.inBand(.early(.audio)))
        return warn(.earlyAudio, "audio before the first key frame is left out", level: .info, to: &out)
      }
      guard let index = audios.index(of: unit.track) else { return out.append(.lost(.audio)) }
      if audios[index].isUnannounced { announce([unit.track], to: &out) }
      let (sample, correction) = audios[index].sample(unit, origin: origin)
      if let correction {
        let what = correction.milliseconds > 0 ? "a gap" : "dropping audio"
        out.append(
          .log(
            .warning,
            "audio and its timestamps are \(correction.milliseconds) ms apart; corrected by \(what) "
              + "(correction \(correction.count))"))
      }
      mending.saw(correction, unit.track, at: unit.time, to: &out)
      out.append(sample.map { .event(.sample($0)) } ?? .inBand(.early(.audio)))
    }
  }

  /// Announces the tracks: new ones, and all that were announced before. Of those, changed audio is announced as it is now. A
  /// changed video stays what it was up to its key frame, since nothing comes of it before.
  private mutating func announce(_ new: [TrackID], to out: inout [PublicationAction]) {
    var tracks: [TrackDescription] = []
    for index in videos.indices {
      let id = videos[index].id
      let isNew = new.contains(id) && videos[index].isUnannounced
      if isNew { _ = videos[index].announce(stated: statedRate(of: id)) }
      if let track = videos[index].description { tracks.append(track) }
    }
    for index in audios.indices {
      if new.contains(audios[index].id) || audios[index].hasChanged { _ = audios[index].announce() }
      if let track = audios[index].description { tracks.append(track) }
    }
    for index in tracks.indices {
      guard let statement = statements[tracks[index].id] else { continue }
      tracks[index].language = statement.language ?? tracks[index].language
      tracks[index].role = statement.role
    }
    out.append(.event(.tracks(tracks.sorted { $0.id < $1.id })))
  }

  /// The metadata's frame rate is that of the first video.
  private func statedRate(of track: TrackID) -> Double? { track == .video ? stated.rate : nil }

  package mutating func warn(
    _ cause: Cause, _ text: String, level: Logger.Level = .warning, to out: inout [PublicationAction]
  ) {
    if warned.insert(cause).inserted { out.append(.log(level, text)) }
  }
}

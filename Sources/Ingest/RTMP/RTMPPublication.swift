internal import FMP4
internal import Logging
internal import NIOCore

/// One publication: audio, video and data messages in, media events out. Holds the beginning back until the tracks
/// that were announced are there (`TrackGate`), lays all times on one timeline whose earliest sample is 0, and tells
/// parameter changes in their place among the samples.
struct RTMPPublication {
  /// Causes that are warned of once.
  private enum Cause: Hashable {
    case damagedVideo, damagedAudio, earlyAudio, stepBack, farPresentation, clocksDiffer, clockDrifts, fallsBehind
    case noConfiguration(MediaKind), leftOutCodec(MediaKind), leftOutTrack(MediaKind), leftOutForm
  }

  private enum State {
    case gathering
    /// `origin` is where the timeline's milliseconds begin; sound before `audioFloor` precedes the first picture.
    case open(origin: Int64, audioFloor: Int64)
  }

  /// Milliseconds by which times of day move without a line in the log.
  private static let worthLogging: Int64 = 20

  private let wallOffset: Int64
  private var state = State.gathering
  private var unwrapper = TimestampUnwrapper()
  private var timeline = Timeline()
  private var gate = TrackGate(
    announcedWait: RTMPLimits.announcedTrackWait, unannouncedWait: RTMPLimits.unannouncedTrackWait)
  private var video = VideoIntake()
  private var audio = AudioIntake()
  private var videoChoice = FLVTrackChoice()
  private var audioChoice = FLVTrackChoice()
  /// What was left out first: why the publication ends where nothing else comes.
  private var firstLeftOut: WireError?
  /// The audio track's newest configuration is of a form that weir takes.
  private var isAudioUsable = true
  private var held = HeldMedia()
  private var mediaClock = MediaClock()
  private var arrivals = ArrivalMeter()
  /// The least of arrival minus the end of presentation, in nanoseconds: the most direct way a sample has taken so far. Nothing
  /// is older than it says then.
  private var leastDelay: Int64 = .max
  /// The earliest presentation time of the newest group of pictures minus its first decode time, in milliseconds.
  private var reorderDelay: Int64 = 0
  /// Where the presentation of the pictures so far ends, in milliseconds.
  private var picturesEnd: Int64?
  /// Once the beginning is out.
  private var follower: ClockFollower?
  private var statedRate: Double?
  private var warned: Set<Cause> = []
  /// What the encoder calls itself.
  private(set) var encoder = ""

  /// `wallOffset` as in `SteadyClock`: wall time minus monotonic time, in nanoseconds.
  init(wallOffset: Int64) {
    self.wallOffset = wallOffset
  }

  /// When `tick` wants to be called, in nanoseconds; nil when nothing waits.
  func deadline(after now: Int64) -> Int64? {
    switch state {
    case .gathering: gate.deadline(after: now)
    case .open: mediaClock.deadline(after: now)
    }
  }

  /// Time has passed: a wait for a track may be over, here or further on. Throws where nothing has come that can be taken.
  mutating func tick(now: Int64, to out: inout [RTMPAction]) throws(WireError) {
    switch state {
    case .gathering:
      if let firstLeftOut, video.codec == nil, audio.codec == nil, gate.isInVain(now: now) { throw firstLeftOut }
      openIfReady(now, to: &out)
    case .open(let origin, _):
      guard let time = mediaClock.tell(now: now) else { return }
      out.append(.event(.progress(MediaTime(milliseconds: time &- origin))))
    }
  }

  // MARK: messages

  mutating func receiveMetadata(_ metadata: PublicationMetadata) {
    if !metadata.encoder.isEmpty { encoder = metadata.encoder }
    guard case .gathering = state else { return }
    statedRate = metadata.framesPerSecond ?? statedRate
    if metadata.hasVideo || metadata.hasAudio {
      gate.announce(
        video: metadata.hasVideo || video.codec != nil, audio: metadata.hasAudio || audio.codec != nil)
    }
  }

  /// `timestamp` is the message's, in milliseconds modulo 2³²; `now` the time of arrival in nanoseconds.
  mutating func receiveVideo(
    _ payload: ByteBuffer, timestamp: UInt32, now: Int64, to out: inout [RTMPAction]
  ) throws(WireError) {
    let tag = try FLVVideoTag(payload, &videoChoice)
    leaveOut(tag.leftOut, of: .video, now, to: &out)
    let wire = unwrapper.unwrap(timestamp)
    switch tag.content {
    case .nothing: return
    case .metadata(let packet):
      if let color = ColorInformation.read(packet) { video.state(color) }
    case .configuration(let coding, let record):
      gate.saw(.video, time: nil, now: now)
      do {
        if try video.configure(coding, record) { held.forget(.video) }
      } catch {
        throw WireError(.unsupported, "\(coding.name) configuration: \(error)")
      }
    case .frame(let coding, let bytes, var composition):
      gate.saw(.video, time: nil, now: now)
      if composition.magnitude > RTMPLimits.longestComposition {
        warn(
          .farPresentation,
          "a picture \(composition) ms from its decoding is shown when it is decoded; check the encoder's clock",
          to: &out)
        composition = 0
      }
      guard video.codec != nil else {
        out.append(.lost(.video))
        return warn(.noConfiguration(.video), "video before its configuration is dropped", to: &out)
      }
      let unit: AccessUnit
      do {
        guard let found = try video.accessUnit(coding, bytes) else { return openIfReady(now, to: &out) }
        unit = found
      } catch {
        out.append(.lost(.video))
        return warn(.damagedVideo, "a damaged access unit is dropped: \(error)", to: &out)
      }
      guard let place = place(.video, wire, nil, now, to: &out) else { return }
      if place.isBreak { picturesEnd = nil }
      note(unit.isSync, shown: place.time &+ Int64(composition), at: place.time, now)
      take(
        .video(
          VideoIntake.Unit(
            time: place.time, composition: composition, nanoseconds: tag.nanoseconds, isSync: unit.isSync,
            isDisposable: unit.isDisposable, payload: unit.payload, isMoved: place.isMoved)),
        now, to: &out)
    }
  }

  mutating func receiveAudio(
    _ payload: ByteBuffer, timestamp: UInt32, now: Int64, to out: inout [RTMPAction]
  ) throws(WireError) {
    let tag = FLVAudioTag(payload, &audioChoice)
    leaveOut(tag.leftOut, of: .audio, now, to: &out)
    if case .nothing = tag.content { return }
    let wire = unwrapper.unwrap(timestamp)
    switch tag.content {
    case .nothing: return
    case .configuration(let coding, let record):
      do {
        if try audio.configure(coding, record) { held.forget(.audio) }
        isAudioUsable = true
        gate.saw(.audio, time: nil, now: now)
      } catch {
        leaveOutAudio(coding, error, now, to: &out)
      }
    case .frame(let coding, let bytes):
      guard isAudioUsable else { return openIfReady(now, to: &out) }
      gate.saw(.audio, time: nil, now: now)
      guard audio.codec != nil else {
        out.append(.lost(.audio))
        return warn(.noConfiguration(.audio), "sound before its configuration is dropped", to: &out)
      }
      guard let duration = audio.duration(coding, bytes), let timescale = audio.timescale else {
        out.append(.lost(.audio))
        return warn(.damagedAudio, "a damaged \(coding.name) frame is dropped", to: &out)
      }
      let length = Int64(duration) &* 1000 / Int64(timescale)
      guard let place = place(.audio, wire, length, now, to: &out) else { return }
      take(
        .audio(AudioIntake.Unit(time: place.time, duration: duration, payload: bytes, isMoved: place.isMoved)),
        now, to: &out)
    }
  }

  /// Tells what is left out, each kind of thing once.
  private mutating func leaveOut(
    _ leftOut: FLVLeftOut, of kind: MediaKind, _ now: Int64, to out: inout [RTMPAction]
  ) {
    if let codec = leftOut.codec, warned.insert(.leftOutCodec(kind)).inserted {
      firstLeftOut = firstLeftOut ?? FLVCodecName.unsupported(codec)
      if (kind == .video ? videoChoice : audioChoice).taken == nil { gate.leftOut(kind, now: now) }
      tell(.leftOutCodec(kind, codec), to: &out)
    }
    if leftOut.hasFurtherTrack, warned.insert(.leftOutTrack(kind)).inserted { tell(.leftOutTrack(kind), to: &out) }
  }

  /// The audio track has a configuration that weir does not take: until a good one comes, here or in another track, there is
  /// none.
  private mutating func leaveOutAudio(
    _ coding: FLVAudioTag.Coding, _ error: CodecError, _ now: Int64, to out: inout [RTMPAction]
  ) {
    isAudioUsable = false
    audioChoice.release()
    gate.leftOut(.audio, now: now)
    let reason = "\(coding.name) configuration: \(error)"
    firstLeftOut = firstLeftOut ?? WireError(.unsupported, reason)
    if warned.insert(.leftOutForm).inserted { tell(.leftOutForm(.audio, reason), to: &out) }
  }

  private func tell(_ warning: PublicationWarning, to out: inout [RTMPAction]) {
    out.append(.log(.warning, warning.description))
    out.append(.warn(warning))
  }

  // MARK: time

  /// Where a sample lies on the timeline; nil when it is dropped.
  private mutating func place(
    _ kind: MediaKind, _ wire: Int64, _ length: Int64?, _ now: Int64, to out: inout [RTMPAction]
  ) -> Timeline.Place? {
    guard let place = timeline.place(kind, wire: wire, length: length, now: now) else {
      out.append(.lost(.audio))
      warn(.stepBack, "sound stepped back in time; it is dropped until it catches up", to: &out)
      return nil
    }
    if let difference = place.alignedBy {
      warn(
        .clocksDiffer, "the clocks of audio and video are \(difference) ms apart; aligned by arrival", to: &out)
    }
    if place.isBreak {
      if case .gathering = state {
        // Nothing has gone out yet: begin again from here.
        held.forget(.video)
        held.forget(.audio)
        gate.forgetMedia()
        leastDelay = .max
      } else {
        out.append(.event(.discontinuity))
        out.append(.log(.warning, "the publisher's timestamps jumped; the timeline goes on with a discontinuity"))
      }
    }
    mediaClock.saw(place.time, now: now)
    let end = end(of: kind, at: place.time, length)
    if place.isBreak {
      arrivals = ArrivalMeter()
      follower?.forget()
      dateAnew(end, now, to: &out)
    }
    follow(end, now, to: &out)
    if let fallsBehind = arrivals.saw(place.time, now: now) {
      let warning = PublicationWarning.fallsBehind
      out.append(fallsBehind ? .warn(warning) : .withdraw(warning))
      if fallsBehind { warn(.fallsBehind, warning.description, to: &out) }
    }
    return place
  }

  private mutating func note(_ isSync: Bool, shown: Int64, at time: Int64, _ now: Int64) {
    if isSync {
      // In an open group of pictures some are shown before the key frame.
      let delay = min(shown, picturesEnd ?? shown) &- time
      // Some senders have no negative decode times to begin with, and tell the truth with the next key frame.
      if delay &- reorderDelay >= Self.noticeable { follower?.beginAgain(now: now) }
      reorderDelay = max(0, delay)
    }
    picturesEnd = max(picturesEnd ?? .min, shown &+ video.frameMilliseconds(stated: statedRate))
  }

  /// Milliseconds of reordering that the times of day are to allow for.
  private static let noticeable: Int64 = 20

  /// Where the presentation ends of all that has come with a sample at that time, in milliseconds.
  private func end(of kind: MediaKind, at time: Int64, _ length: Int64?) -> Int64 {
    kind == .video ? time &+ reorderDelay &+ video.frameMilliseconds(stated: statedRate) : time &+ (length ?? 0)
  }

  /// Tells the time anew where the publisher's clock has drifted.
  private mutating func follow(_ time: Int64, _ now: Int64, to out: inout [RTMPAction]) {
    guard case .open(let origin, _) = state, let before = follower, let delay = follower?.saw(time, now: now) else {
      return
    }
    if before.isBeginning {
      let milliseconds = (before.told &- delay) / 1_000_000
      if milliseconds >= Self.worthLogging {
        out.append(.log(.info, "the first media came late; times of day are set \(milliseconds) ms earlier"))
      }
    } else {
      warn(
        .clockDrifts, "the publisher's clock runs \(delay > before.told ? "slow" : "fast"); the times of day follow it",
        level: .info, to: &out)
    }
    out.append(.event(.clock(anchor(delay: delay, origin))))
  }

  /// Behind a break of the timeline other times of day may hold: a publisher that paused left a hole in time, and none in its
  /// media.
  private mutating func dateAnew(_ end: Int64, _ now: Int64, to out: inout [RTMPAction]) {
    let delay = now &- end &* 1_000_000
    guard case .open(let origin, _) = state, let told = follower?.told,
      (delay &- told).magnitude >= ClockFollower.sudden.magnitude
    else { return }
    follower = ClockFollower(delay: delay, now: now)
    out.append(.event(.clock(anchor(delay: delay, origin))))
  }

  private func anchor(delay: Int64, _ origin: Int64) -> WallClockAnchor {
    WallClockAnchor(mediaTime: .zero, wallNanoseconds: delay &+ origin &* 1_000_000 &+ wallOffset)
  }

  // MARK: the beginning

  private mutating func take(_ unit: MediaUnit, _ now: Int64, to out: inout [RTMPAction]) {
    if case .open(let origin, let audioFloor) = state {
      emit(unit, origin, audioFloor, to: &out)
      return
    }
    gate.saw(unit.kind, time: unit.time, now: now)
    leastDelay = min(leastDelay, now &- end(of: unit) &* 1_000_000)
    held.append(unit)
    openIfReady(now, to: &out)
  }

  private func end(of unit: MediaUnit) -> Int64 {
    switch unit {
    case .video(let unit): end(of: .video, at: unit.time, nil)
    case .audio(let unit):
      end(of: .audio, at: unit.time, audio.timescale.map { Int64(unit.duration) &* 1000 / Int64(max($0, 1)) })
    }
  }

  private mutating func openIfReady(_ now: Int64, to out: inout [RTMPAction]) {
    guard case .gathering = state, !held.isEmpty else { return }
    let firstPicture = held.firstPicture
    let floor = firstPicture.map { audioFloor($0) } ?? .min
    let firstSound = held.firstSound(from: floor)
    var decision = gate.decide(videoReady: firstPicture != nil, audioReady: firstSound != nil, now: now)
    if decision == .wait, held.isFull { decision = .open(missing: []) }
    guard case .open(let missing) = decision, let origin = [firstPicture?.time, firstSound].compactMap({ $0 }).min()
    else { return }
    for kind in missing { tell(.neverCame(kind), to: &out) }
    state = .open(origin: origin, audioFloor: floor)
    follower = ClockFollower(delay: leastDelay, now: now)
    out.append(.event(.clock(anchor(delay: leastDelay, origin))))
    announce(video: firstPicture != nil, audio: firstSound != nil, to: &out)
    for unit in held.takeAll() { emit(unit, origin, floor, to: &out) }
  }

  /// Sound from here on begins with the picture: not earlier than it by more than one frame of either.
  private func audioFloor(_ first: VideoIntake.Unit) -> Int64 {
    first.time &+ Int64(first.composition) &- Self.leadOfSound
  }

  /// One frame of sound (AAC at 24 kHz: 43 ms) or of 24 pictures a second, and a millisecond of rounding.
  private static let leadOfSound: Int64 = 44

  // MARK: samples

  private mutating func emit(_ unit: MediaUnit, _ origin: Int64, _ audioFloor: Int64, to out: inout [RTMPAction]) {
    switch unit {
    case .video(let unit):
      guard unit.time >= origin else { return }
      if video.isUnannounced { announce(video: true, audio: false, to: &out) }
      out.append(.event(.sample(video.sample(unit, origin: origin))))
    case .audio(let unit):
      guard unit.time >= audioFloor, unit.time >= origin else {
        return warn(.earlyAudio, "sound before the first key frame is left out", level: .info, to: &out)
      }
      if audio.isUnannounced { announce(video: false, audio: true, to: &out) }
      let (sample, correction) = audio.sample(unit, origin: origin)
      if let correction {
        let what = correction.milliseconds > 0 ? "a gap" : "dropping sound"
        out.append(
          .log(
            .warning,
            "sound and its timestamps are \(correction.milliseconds) ms apart; corrected by \(what) "
              + "(correction \(correction.count))"))
      }
      if let sample { out.append(.event(.sample(sample))) }
    }
  }

  /// Tells the tracks: those that are newly there or changed, and those that go on.
  private mutating func announce(video newVideo: Bool, audio newAudio: Bool, to out: inout [RTMPAction]) {
    var tracks: [TrackDescription] = []
    if newVideo || !video.isUnannounced {
      let track = newVideo ? video.announce(stated: statedRate) : video.description
      if let track { tracks.append(track) }
    }
    if newAudio || !audio.isUnannounced {
      let track = newAudio ? audio.announce() : audio.description
      if let track { tracks.append(track) }
    }
    out.append(.event(.tracks(tracks)))
  }

  private mutating func warn(
    _ cause: Cause, _ text: String, level: Logger.Level = .warning, to out: inout [RTMPAction]
  ) {
    if warned.insert(cause).inserted { out.append(.log(level, text)) }
  }
}

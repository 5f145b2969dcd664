internal import Base
internal import FMP4
internal import NIOCore
internal import Publishing

/// A publication whose media comes as FLV tags, with all tracks of Enhanced RTMP v2.
struct FLVPublication {
  private var publication: Publication
  /// One clock for all tags. libavformat writes 31 bits of times, which begin again after 24.9 days.
  private var clock = WireClock(hertz: 1000, bits: 32, mayLackHighestBit: true)
  /// Numbers of the tracks that have come in a supported codec. Arrays, because they are short and asked for each tag.
  private var videos: [UInt8] = []
  private var audios: [UInt8] = []
  /// The newest configurations that frames of audio stated, by the numbers of their tracks.
  private var ownAudioRecords: [UInt8: ByteBuffer] = [:]
  /// Numbers of the audio tracks whose configuration came in a sequence header.
  private var statedAudios: [UInt8] = []
  /// Access units of H.264 and HEVC, by the numbers of their tracks.
  private var frames: [UInt8: FLVFrames] = [:]

  init(reading: ClockReading) { publication = Publication(reading: reading) }

  /// Bytes of media that wait for the start, and how many may.
  var heldBytes: Int { publication.heldBytes &+ heldInFrames }
  private var heldInFrames: Int { frames.values.reduce(0) { $0 &+ $1.heldBytes } }
  var mostHeldAtStart: Int {
    get { publication.held.most }
    set { publication.held.most = newValue }
  }
  var awaitsStart: Bool { publication.awaitsStart }

  /// Name of the encoder.
  var encoder: String { publication.encoder }

  /// Time of the next `tick`. Nil if nothing waits.
  func deadline(after now: MonotonicTime) -> MonotonicTime? {
    let frame = frames.values.compactMap(\.deadline).min().map { max($0, now &+ 1) }
    return [frame, publication.deadline(after: now)].compactMap(\.self).min()
  }

  /// Handles the passing of time. Throws if no supported media has come.
  mutating func tick(now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) {
    for number in frames.keys.sorted() where frames[number]?.deadline.map({ $0 <= now }) ?? false {
      try finish(number, to: &out)
    }
    try publication.tick(now: now, to: &out)
  }

  /// The publisher has ended: what is complete still counts.
  mutating func finish(to out: inout [PublicationAction]) throws(WireError) {
    for number in frames.keys.sorted() { try finish(number, to: &out) }
    publication.finish(to: &out)
  }

  mutating func receive(_ metadata: PublicationMetadata) { publication.receive(metadata) }

  /// Takes the body of a video tag. `timestamp` is the tag's, in milliseconds modulo 2³². `now` is the arrival time.
  mutating func receiveVideo(
    _ payload: ByteBuffer, timestamp: UInt32, now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    let tag = try FLVVideoTag(payload, hasFurther: videos.contains { $0 != 0 })
    for track in tag.tracks where !videos.contains(track.number) { videos.append(track.number) }
    for _ in 0..<tag.leftOutFrames { out.append(.lost(.video)) }
    if let name = tag.leftOut { leaveOut(name, .video, tag.leftOutNumber, isAlone: videos.isEmpty, now, to: &out) }
    if tag.tracks.isEmpty { return }
    let time = clock.nanoseconds(UInt64(timestamp))
    for track in tag.tracks {
      let id = TrackID(.video, flv: track.number)
      switch track.content {
      case .metadata(let packet):
        if let color = ColorInformation.read(packet) { publication.receive(color, of: id) }
      case .configuration(let coding, let record):
        try configureVideo(track.number, coding, record, now, to: &out)
      case .frame(let coding, let bytes, let composition):
        let frame = FLVFrames.Frame(
          payload: bytes, time: time, composition: Int64(composition) * 1_000_000 + Int64(tag.nanoseconds), now: now)
        if coding.type.hasNALUnits, begin(track.number, coding) {
          var late: [FLVFrames.Late] = []
          let whole = frames[track.number]?.receive(frame, late: &late) ?? []
          if heldInFrames > FLVFrames.longestFrame {
            frames[track.number]?.drop()
            late.append(FLVFrames.Late())
          }
          for rest in late {
            // What still waits for the start can be completed, unless it waits for its time as well.
            guard let units = rest.units, !publication.judge.holds(id),
              publication.held.extend(id, by: units, most: FLVFrames.longestFrame)
            else {
              if rest.hasSlice { out.append(.lost(.video)) }
              continue
            }
          }
          for frame in whole { try give(frame, coding, track.number, to: &out) }
          continue
        }
        if let fault = coding.type.fault(inFrame: bytes) {
          publication.leaveOut(unreadable: fault, coding, id, now: now, to: &out)
          continue
        }
        if coding.type.isStatedByFrames, let record = coding.type.record(inFrame: bytes) {
          _ = try publication.configure(id, coding, record: ByteBuffer(bytes: record), now: now, to: &out)
        }
        give(frame, coding, id, to: &out)
      }
    }
  }

  private mutating func give(
    _ frame: FLVFrames.Frame, _ coding: CodecID, _ id: TrackID, to out: inout [PublicationAction]
  ) {
    publication.receive(
      WireUnit(
        track: id, coding: coding, time: frame.time, composition: frame.composition, payload: frame.payload),
      now: frame.now, to: &out)
  }

  // MARK: access units of H.264 and HEVC

  /// Makes access units of the tags of a track from now on. False if there are too many tracks.
  private mutating func begin(_ number: UInt8, _ coding: CodecID) -> Bool {
    if frames[number]?.coding == coding { return true }
    guard frames[number] != nil || frames.count < PublicationLimits.tracks else { return false }
    frames[number] = FLVFrames(coding)
    return true
  }

  private mutating func configureVideo(
    _ number: UInt8, _ coding: CodecID, _ record: ByteBuffer, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    try finish(number, to: &out)
    let hasUnits = coding.type.hasNALUnits
    var record = record
    if hasUnits, FramedNALUnits.hasStartCode(record), let codec = try? Codec(coding, stream: record) {
      record = ByteBuffer(bytes: codec.record())
    }
    let id = TrackID(.video, flv: number)
    _ = try publication.configure(id, coding, record: record, now: now, to: &out)
    // One that is passed over says nothing of the frames.
    if hasUnits, publication.hasConfiguration(of: id, coding, record), begin(number, coding) {
      frames[number]?.configure(record)
    }
  }

  private mutating func give(
    _ frame: FLVFrames.Frame, _ coding: CodecID, _ number: UInt8, to out: inout [PublicationAction]
  ) throws(WireError) {
    let id = TrackID(.video, flv: number)
    do throws(CodecError) {
      if let record = try frames[number]?.record(inFrame: frame.payload) {
        _ = try? publication.configure(id, coding, record: record, now: frame.now, to: &out)
      }
    } catch {
      return publication.leaveOut(unreadable: error, coding, id, now: frame.now, to: &out)
    }
    give(frame, coding, id, to: &out)
  }

  private mutating func finish(_ number: UInt8, to out: inout [PublicationAction]) throws(WireError) {
    guard let coding = frames[number]?.coding, let frame = frames[number]?.finish() else { return }
    try give(frame, coding, number, to: &out)
  }

  // MARK: audio

  /// Takes the body of an audio tag; see `receiveVideo`.
  mutating func receiveAudio(
    _ payload: ByteBuffer, timestamp: UInt32, now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    let tag = FLVAudioTag(payload)
    for track in tag.tracks where !audios.contains(track.number) { audios.append(track.number) }
    for _ in 0..<tag.leftOutFrames { out.append(.lost(.audio)) }
    if let name = tag.leftOut { leaveOut(name, .audio, tag.leftOutNumber, isAlone: audios.isEmpty, now, to: &out) }
    if tag.tracks.isEmpty { return }
    let time = clock.nanoseconds(UInt64(timestamp))
    for track in tag.tracks {
      let id = TrackID(.audio, flv: track.number)
      switch track.content {
      case .configuration(let coding, let record):
        let header = coding == .aac ? ADTSHeader(record, at: 0) : nil
        let stated = header.map { ByteBuffer(bytes: $0.audioSpecificConfig) } ?? record
        try configureAudio(track.number, coding, stated, now, to: &out)
        // An empty one states nothing, nor does one that is broken.
        if !statedAudios.contains(track.number), publication.hasConfiguration(of: id, coding, stated) {
          statedAudios.append(track.number)
        }
      case .frame(let coding, let bytes):
        if let record = tag.ownRecords[track.number], record != ownAudioRecords[track.number] {
          ownAudioRecords[track.number] = record
          try configureAudio(track.number, coding, record, now, to: &out)
        }
        if coding == .aac, ADTSHeader(bytes, at: 0) != nil {
          try receiveADTS(bytes, track.number, time, now, to: &out)
          continue
        }
        guard coding == .mpegAudio else {
          publication.receive(WireUnit(track: id, coding: coding, time: time, payload: bytes), now: now, to: &out)
          continue
        }
        // Some encoders put several frames of MP3 into one tag.
        let (frames, hasMore) = MPEGAudio.frames(in: bytes, most: PublicationLimits.audioFrames)
        for (start, frame) in frames {
          publication.receive(
            WireUnit(track: id, coding: coding, time: time &+ start, isCountedOn: start > 0, payload: frame), now: now,
            to: &out)
        }
        if hasMore { loseFurtherAudio(coding, to: &out) }
      }
    }
  }

  /// Drops the frames of a message that has too many. They count as one.
  private mutating func loseFurtherAudio(_ coding: CodecID, to out: inout [PublicationAction]) {
    out.append(.lost(.audio))
    let most = PublicationLimits.audioFrames
    publication.warn(
      .damagedAudio, "of a message with more than \(most) frames of \(coding.name) the others are dropped", to: &out)
  }

  /// Takes AAC with ADTS headers, which have no place in FLV: it is passed on without them. They state its configuration where no
  /// sequence header has.
  private mutating func receiveADTS(
    _ bytes: ByteBuffer, _ number: UInt8, _ time: Int64, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    let id = TrackID(.audio, flv: number)
    guard let (frames, hasMore) = AAC.framesWithADTS(in: bytes, most: PublicationLimits.audioFrames) else {
      let fault = CodecError(
        .unsupported, "AAC behind an ADTS header of several blocks, or of a frame that is cut off")
      return publication.leaveOut(unreadable: fault, .aac, id, now: now, to: &out)
    }
    var start: Int64 = 0
    for (header, frame, record) in frames {
      if !statedAudios.contains(number), let record = record.map({ ByteBuffer(bytes: $0) }),
        record != ownAudioRecords[number]
      {
        ownAudioRecords[number] = record
        try configureAudio(number, .aac, record, now, to: &out)
      }
      publication.receive(
        WireUnit(track: id, coding: .aac, time: time &+ start, isCountedOn: start > 0, payload: frame), now: now,
        to: &out)
      start &+= ADTSHeader.samples &* 1_000_000_000 / Int64(header.rate)
    }
    if hasMore { loseFurtherAudio(.aac, to: &out) }
  }

  private mutating func configureAudio(
    _ number: UInt8, _ coding: CodecID, _ record: ByteBuffer, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    let id = TrackID(.audio, flv: number)
    if try !publication.configure(id, coding, record: record, now: now, to: &out) { audios.removeAll { $0 == number } }
  }

  private mutating func leaveOut(
    _ codec: String, _ kind: MediaKind, _ number: UInt8, isAlone: Bool, _ now: MonotonicTime,
    to out: inout [PublicationAction]
  ) {
    // Frames that state the former configuration again take it up again.
    if kind == .audio { ownAudioRecords[number] = nil }
    publication.leaveOut(codec: codec, of: kind, TrackID(kind, flv: number), isAlone: isAlone, now: now, to: &out)
  }
}

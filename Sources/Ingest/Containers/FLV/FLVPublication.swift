internal import FMP4
internal import NIOCore

/// A publication whose media comes as FLV tags, with all tracks of Enhanced RTMP v2.
struct FLVPublication {
  private var publication: Publication
  /// One clock for all tags.
  private var clock = WireClock(hertz: 1000, bits: 32)
  /// Numbers of the tracks that have come in a supported codec. Arrays, because they are short and asked for each tag.
  private var videos: [UInt8] = []
  private var audios: [UInt8] = []
  /// The newest configurations that frames of audio stated, by the numbers of their tracks.
  private var ownAudioRecords: [UInt8: ByteBuffer] = [:]

  init(reading: ClockReading) { publication = Publication(reading: reading) }

  /// Bytes of media that wait for the start, and how many may.
  var heldBytes: Int { publication.held.byteCount }
  var mostHeldAtStart: Int {
    get { publication.held.most }
    set { publication.held.most = newValue }
  }
  var awaitsStart: Bool { publication.awaitsStart }

  /// Name of the encoder.
  var encoder: String { publication.encoder }

  /// Time of the next `tick`. Nil if nothing waits.
  func deadline(after now: MonotonicTime) -> MonotonicTime? { publication.deadline(after: now) }

  /// Handles the passing of time. Throws if no supported media has come.
  mutating func tick(now: MonotonicTime, to out: inout [PublicationAction]) throws(WireError) {
    try publication.tick(now: now, to: &out)
  }

  mutating func receive(_ metadata: PublicationMetadata) { publication.receive(metadata) }

  /// Takes the body of a video tag. `timestamp` is the tag's, in milliseconds modulo 2³². `now` is the arrival time.
  mutating func receiveVideo(
    _ payload: ByteBuffer, timestamp: UInt32, now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    let tag = try FLVVideoTag(payload, hasFurther: videos.contains { $0 != 0 })
    for track in tag.tracks where !videos.contains(track.number) { videos.append(track.number) }
    if let name = tag.leftOut { leaveOut(name, .video, tag.leftOutNumber, isAlone: videos.isEmpty, now, to: &out) }
    if tag.tracks.isEmpty { return }
    let time = clock.nanoseconds(UInt64(timestamp))
    for track in tag.tracks {
      let id = TrackID(.video, flv: track.number)
      switch track.content {
      case .metadata(let packet):
        if let color = ColorInformation.read(packet) { publication.receive(color, of: id) }
      case .configuration(let coding, let record):
        _ = try publication.configure(id, coding, record: record, now: now, to: &out)
      case .frame(let coding, let bytes, let composition):
        if let fault = coding.type.fault(inFrame: bytes) {
          publication.leaveOut(unreadable: fault, coding, id, now: now, to: &out)
          continue
        }
        if coding.type.isStatedByFrames, let record = coding.type.record(inFrame: bytes) {
          _ = try publication.configure(id, coding, record: ByteBuffer(bytes: record), now: now, to: &out)
        }
        publication.receive(
          WireUnit(
            track: id, coding: coding, time: time,
            composition: Int64(composition) * 1_000_000 + Int64(tag.nanoseconds), payload: bytes), now: now, to: &out)
      }
    }
  }

  /// Takes the body of an audio tag; see `receiveVideo`.
  mutating func receiveAudio(
    _ payload: ByteBuffer, timestamp: UInt32, now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    let tag = FLVAudioTag(payload)
    for track in tag.tracks where !audios.contains(track.number) { audios.append(track.number) }
    if let name = tag.leftOut { leaveOut(name, .audio, tag.leftOutNumber, isAlone: audios.isEmpty, now, to: &out) }
    if tag.tracks.isEmpty { return }
    let time = clock.nanoseconds(UInt64(timestamp))
    for track in tag.tracks {
      let id = TrackID(.audio, flv: track.number)
      switch track.content {
      case .configuration(let coding, let record):
        try configureAudio(track.number, coding, record, now, to: &out)
      case .frame(let coding, let bytes):
        if let record = tag.ownRecords[track.number], record != ownAudioRecords[track.number] {
          ownAudioRecords[track.number] = record
          try configureAudio(track.number, coding, record, now, to: &out)
        }
        guard coding == .mpegAudio else {
          publication.receive(WireUnit(track: id, coding: coding, time: time, payload: bytes), now: now, to: &out)
          continue
        }
        // Some encoders put several frames of MP3 into one tag.
        for (start, frame) in MPEGAudio.frames(in: bytes) {
          publication.receive(
            WireUnit(track: id, coding: coding, time: time &+ start, payload: frame), now: now, to: &out)
        }
      }
    }
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

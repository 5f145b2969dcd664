internal import FMP4
internal import NIOCore

/// A publication whose media comes as FLV tags. Chooses one track of each kind and passes its media to the publication.
struct FLVPublication {
  private var publication: Publication
  /// One clock for all tags.
  private var clock = WireClock(hertz: 1000, bits: 32)
  private var videoChoice = FLVTrackChoice()
  private var audioChoice = FLVTrackChoice()
  /// The newest configuration that a frame of audio stated.
  private var ownAudioRecord: ByteBuffer?

  init(reading: ClockReading) {
    publication = Publication(reading: reading)
  }

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
    let tag = try FLVVideoTag(payload, &videoChoice)
    leaveOut(tag.leftOut, of: .video, isAlone: videoChoice.taken == nil, now, to: &out)
    let time = clock.nanoseconds(UInt64(timestamp))
    switch tag.content {
    case .nothing: return
    case .metadata(let packet):
      if let color = ColorInformation.read(packet) { publication.receive(color, of: .video) }
    case .configuration(let coding, let record):
      _ = try publication.configure(.video, coding, record: record, now: now, to: &out)
    case .frame(let coding, let bytes, let composition):
      publication.receive(
        WireUnit(
          track: .video, coding: coding, time: time,
          composition: Int64(composition) * 1_000_000 + Int64(tag.nanoseconds), payload: bytes), now: now, to: &out)
    }
  }

  /// Takes the body of an audio tag; see `receiveVideo`.
  mutating func receiveAudio(
    _ payload: ByteBuffer, timestamp: UInt32, now: MonotonicTime, to out: inout [PublicationAction]
  ) throws(WireError) {
    let tag = FLVAudioTag(payload, &audioChoice)
    leaveOut(tag.leftOut, of: .audio, isAlone: audioChoice.taken == nil, now, to: &out)
    if case .nothing = tag.content { return }
    let time = clock.nanoseconds(UInt64(timestamp))
    switch tag.content {
    case .nothing: return
    case .configuration(let coding, let record):
      if try !publication.configure(.audio, coding, record: record, now: now, to: &out) { audioChoice.release() }
    case .frame(let coding, let bytes):
      if let record = tag.ownRecord, record != ownAudioRecord {
        ownAudioRecord = record
        if try !publication.configure(.audio, coding, record: record, now: now, to: &out) { audioChoice.release() }
      }
      publication.receive(
        WireUnit(track: .audio, coding: coding, time: time, payload: bytes), now: now, to: &out)
    }
  }

  private mutating func leaveOut(
    _ leftOut: FLVLeftOut, of kind: MediaKind, isAlone: Bool, _ now: MonotonicTime, to out: inout [PublicationAction]
  ) {
    if let codec = leftOut.codec {
      publication.leaveOut(codec: codec, of: kind, isAlone: isAlone, now: now, to: &out)
    }
    if leftOut.hasFurtherTrack { publication.leaveOutFurtherTrack(of: kind, to: &out) }
  }
}

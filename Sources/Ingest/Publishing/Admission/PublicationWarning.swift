package import FMP4

/// A warning about a running publication, for the operator of the stream.
package enum PublicationWarning: Sendable, Hashable, CustomStringConvertible {
  /// An announced track did not come. The warning ends once `.tracks` has one of this kind.
  case neverCame(MediaKind)
  /// Media arrives more slowly than it plays. Withdrawn when it keeps up again.
  case fallsBehind
  /// The publisher's clock is off real time by so many thousandths, ten or more. Positive: it is fast. Withdrawn when it is right.
  case clockIsOff(thousandths: Int)
  /// More than one percent of the audio is mended: its frames and their timestamps do not keep together. Withdrawn below half of that.
  case mendsAudio
  /// Media came in a codec that weir does not support. The codec's name is printable. Withdrawn once its track can be taken.
  case leftOutCodec(MediaKind, String)
  /// Media came in an unsupported form of its codec. The reason is printable. Withdrawn once its track can be taken.
  case leftOutForm(MediaKind, String)
  /// Media cannot be read. The reason is printable. Withdrawn once it can.
  case unreadable(MediaKind, String)
  /// The codec's name: it is passed on, and most browsers cannot play it. Withdrawn with another codec.
  case rarelyPlayed(String)
  /// The codec's name: the worker that decodes it was lost, and is started again. Withdrawn with its next frame.
  case decoderLost(String)
  /// The codec's name: this machine was too busy to decode all of it. Withdrawn after half a minute without a hole.
  case decoderLate(String)
  /// The publisher said that it sends key frames as it is asked, and does not. Withdrawn with the next one.
  case ignoresRequests
  /// Packets came with numbers that do not fit (RTP sequence numbers). Withdrawn half a minute after the last one.
  case numbersJump
  /// The video has no key frames: its encoder refreshes the picture little by little. Withdrawn with the next key frame.
  case onlyGradualRefresh
  /// More tracks of a kind came than weir accepts. Withdrawn when all have a place.
  case leftOutTrack(MediaKind)
  /// Media arrives much faster than it plays. Withdrawn when it no longer does.
  case runsAhead
  /// The media needs more memory than the stream may have, so viewers can seek back less far. Withdrawn when it did not for as
  /// long as the window.
  case outgrowsMemory

  package var description: String {
    switch self {
    case .neverCame(let kind):
      "\(kind.rawValue) never came, though it was announced; the stream began without it"
    case .fallsBehind:
      "media arrives more slowly than it plays, so viewers will stall: the publisher's uplink or encoder is too slow for"
        + " its bit rate; lower the bit rate"
    case .clockIsOff(let thousandths):
      "media comes \(thousandths.magnitude / 10).\(thousandths.magnitude % 10) % \(thousandths < 0 ? "slower" : "faster") than it"
        + " plays, all the time: the publisher's clock is \(thousandths < 0 ? "slow, or its uplink too narrow" : "fast");"
        + " times of day are set again with a discontinuity each time that they are half a second wrong; check the encoder's clock"
    case .mendsAudio:
      "audio is mended again and again, since its timestamps advance at another pace than its samples: listeners hear it; check the"
        + " encoder's sample rate and clock (weir_ingest_audio_corrections_total counts it)"
    case .leftOutCodec(let kind, let codec):
      "\(kind.rawValue) in \(codec) is left out; weir takes \(Self.taken(kind)): choose one of them in the encoder"
    case .leftOutForm(let kind, let reason): "\(kind.rawValue) is left out: \(reason)"
    case .unreadable(let kind, let reason): "\(kind.rawValue) is left out until it can be read: \(reason)"
    case .rarelyPlayed(let codec):
      "audio in \(codec) is passed on as it is, and most browsers cannot play it; --audio-codec aac adds a rendition that all can"
    case .decoderLost(let codec):
      "audio in \(codec) is missing for now: the process that decodes it was lost and is started again"
    case .decoderLate(let codec):
      "audio in \(codec) has holes, since this machine was too busy to decode all of it; free a core for it"
    case .ignoresRequests:
      "the publisher does not send the key frames that it is asked for (PLI): viewers join late, and after a loss the picture"
        + " stays broken; set its key frame interval to 2 s"
    case .numbersJump:
      "the sequence numbers of its RTP packets jump: packets that do not fit are left out, and the picture may stand still until"
        + " the next key frame; update the publisher, or what its packets pass through"
    case .onlyGradualRefresh:
      "no key frames come, only gradual refresh: who joins later sees nothing; turn intra refresh off in the encoder, and set its"
        + " key frame interval to 2 s"
    case .leftOutTrack(let kind):
      "a further \(kind.rawValue) track is left out; weir takes 16 tracks of a publication, the first ones"
    case .runsAhead:
      "media arrives more than twice as fast as it plays, so old segments go sooner than viewers need them; send at real"
        + " time (ffmpeg: -re)"
    case .outgrowsMemory:
      "its media need more memory than the stream may have, so viewers can go back less far than --window; check the"
        + " encoder's clock, lower the bit rate, or set more by --stream-memory or --media-memory"
    }
  }

  private static func taken(_ kind: MediaKind) -> String {
    switch kind {
    case .video: "H.264, HEVC, AV1 and VP9"
    case .audio: "AAC, Opus, AC-3, E-AC-3, MP1, MP2, MP3 and G.711"
    }
  }
}

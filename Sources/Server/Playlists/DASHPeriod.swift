internal import FMP4
internal import Streams

/// A Period of a manifest and its content (ISO/IEC 23009-1 §5.3.2 to §5.3.9). Its start and its presentationTimeOffset map
/// media time to the wall clock: availabilityStartTime + start + (t − presentationTimeOffset). With an outage between two
/// Periods, the segments of the first end before the second starts. No Period has a duration: libavformat plays the Period
/// with the longest duration, and the newest one when none has any.
struct DASHPeriod {
  let manifest: DASHManifest
  let period: LiveWindow.Period
  /// The listed segments of this Period.
  let segments: [LiveSegment]
  /// How many of its newest segments the timelines list.
  var tellsLast = Int.max

  var element: XMLElement {
    let start = MediaTime(nanoseconds: period.wallStart &- manifest.epoch.availabilityStart)
    let tracks = manifest.window.inits[period.initVersion]?.tracks ?? []
    return XMLElement(
      "Period", ["id": String(period.ordinal), "start": DASHManifest.duration(start)],
      children: tracks.filter { !isRepresentation($0) }.compactMap(adaptationSet) + audioSets)
  }

  /// Further videos that players may switch to, each with the first one's AdaptationSet.
  private var switchable: ArraySlice<TrackDescription> {
    let known = manifest.window.inits[period.initVersion]?.tracks ?? []
    return manifest.window.switchableVideos.filter(known.contains).dropFirst()
  }

  /// The video is a Representation of the first one's AdaptationSet.
  private func isRepresentation(_ track: TrackDescription) -> Bool {
    guard let first = manifest.window.switchableVideos.first else { return false }
    return switchable.contains(track) && track.codec.id == first.codec.id && track.timescale == first.timescale
  }

  /// The AdaptationSets between which players may switch (§5.3.3.5), of one picture in several codecs.
  private func switching(_ track: TrackDescription) -> [XMLElement] {
    guard let first = manifest.window.switchableVideos.first else { return [] }
    let sets = [first] + switchable.filter { !isRepresentation($0) }
    guard sets.count > 1, sets.contains(track) else { return [] }
    let others = sets.filter { $0 != track }.map { String($0.id.rawValue) }.joined(separator: ",")
    return [
      XMLElement(
        "SupplementalProperty",
        ["schemeIdUri": "urn:mpeg:dash:adaptation-set-switching:2016", "value": others])
    ]
  }

  private var next: LiveWindow.Period? {
    manifest.window.periods.first { $0.ordinal == period.ordinal + 1 }
  }

  /// No more segments follow, so the true length of the last one is known.
  private var isOver: Bool { next != nil || manifest.window.isInterrupted || manifest.window.isEnded }

  /// The AdaptationSets of audio in another codec. They are separate, because players do not change codecs within a set.
  private var audioSets: [XMLElement] {
    guard let first = segments.first?.sequenceNumber, let last = segments.last?.sequenceNumber else { return [] }
    return manifest.epoch.playableAudio.compactMap { rung in
      guard let track = rung.window.inits[period.initVersion]?.tracks.first else { return nil }
      let own = rung.window.segments.filter { (first...last).contains($0.sequenceNumber) }
      let spans = spans(of: track, in: own)
      guard !spans.isEmpty else { return nil }
      return XMLElement(
        "AdaptationSet",
        [
          "id": String(Self.audioSets + track.id.rawValue), "contentType": "audio", "mimeType": "audio/mp4",
          "segmentAlignment": "true", "startWithSAP": "1", "lang": LanguageCode.tag(track.language),
        ],
        children: continuity(rung.window.initVersion(rung.rendition, in: period.initVersion))
          + [referenceTime(track), role(track), representation(track, .rung(rung), spans)])
    }
  }

  /// The first id of the AdaptationSets with audio in another codec.
  private static let audioSets: UInt32 = 100

  private func adaptationSet(_ track: TrackDescription) -> XMLElement? {
    let spans = spans(of: track, in: segments)
    guard !spans.isEmpty else { return nil }
    return XMLElement(
      "AdaptationSet",
      [
        "id": String(track.id.rawValue), "contentType": track.kind.rawValue, "mimeType": "\(track.kind.rawValue)/mp4",
        "segmentAlignment": "true", "startWithSAP": accessPoint(track).map(String.init),
        "lang": track.kind == .audio ? LanguageCode.tag(track.language) : nil,
      ],
      children: continuity(version(of: track)) + switching(track) + label(track) + [referenceTime(track)]
        + resynchronization(track) + accessibility(track) + [
          role(track), representation(track, .source(Rendition(track)), spans),
        ]
        + (isFirst(track) && track.kind == .video ? others(of: track) + rungs(of: track) : []))
  }

  /// The highest type of access point that all segments of the set start with (ISO/IEC 14496-12 Annex I). It is 3 when some
  /// frames after the key frame are shown before it and need the previous segment. Nil when a segment starts without an access
  /// point: a value would promise one for every segment (ISO/IEC 23009-1 §5.3.7.2), and without the attribute nothing is promised.
  /// It returns when no such segment is listed any more.
  private func accessPoint(_ track: TrackDescription) -> Int? {
    guard track.kind == .video else { return 1 }
    if !isFirst(track) {
      return segments.allSatisfy { $0.span(of: track.id)?.isIndependent ?? true } ? 1 : nil
    }
    return segments.allSatisfy(\.isIndependent) ? segments.contains(where: \.opensGroup) ? 3 : 1 : nil
  }

  /// The first track of its kind in this Period.
  private func isFirst(_ track: TrackDescription) -> Bool {
    manifest.window.inits[period.initVersion]?.tracks.first(track.kind)?.id == track.id
  }

  /// The role "main" of the first track of a kind, "alternate" of the others (ISO/IEC
  /// 23009-1 §5.8.5.5).
  private func role(_ track: TrackDescription) -> XMLElement {
    let tracks = manifest.window.inits[period.initVersion]?.tracks ?? []
    let isMain = !tracks.contains(track) || tracks.first(track.kind)?.id == track.id
    return XMLElement("Role", ["schemeIdUri": "urn:mpeg:dash:role:2011", "value": isMain ? "main" : "alternate"])
  }

  /// The name for viewers, if one is configured (§5.3.10).
  private func label(_ track: TrackDescription) -> [XMLElement] {
    manifest.epoch.presentation.audioNames[track].map { [XMLElement("Label", [:], text: $0)] } ?? []
  }

  /// Closed captions of a video, and for whom an audio track is (TV-Anytime AudioPurposeCS, as DVB-DASH has it).
  private func accessibility(_ track: TrackDescription) -> [XMLElement] {
    guard track.kind == .audio else { return CaptionLines(manifest.window.captions, of: track).descriptors }
    let purpose: String
    switch track.role {
    case .main: return []
    case .description: purpose = "1"
    case .hearingImpaired: purpose = "2"
    }
    return [
      XMLElement("Accessibility", ["schemeIdUri": "urn:tva:metadata:cs:AudioPurposeCS:2007", "value": purpose])
    ]
  }

  /// Representations of further videos that are the same picture.
  private func others(of source: TrackDescription) -> [XMLElement] {
    switchable.filter(isRepresentation).compactMap { track in
      let spans = spans(of: track, in: segments)
      return spans.isEmpty ? nil : representation(track, .source(Rendition(track)), spans)
    }
  }

  private func spans(of track: TrackDescription, in segments: [LiveSegment]) -> [LiveSegment.Listing] {
    segments.compactMap { segment in
      guard var span = segment.span(of: track.id), segment.isComplete || span.announced != nil else { return nil }
      // An announced length may exceed the media; dash.js would never leave such a Period.
      if isOver, segment.isComplete, segment.sequenceNumber == segments.last?.sequenceNumber { span.announced = nil }
      return span.listed
    }
  }

  /// Representations of the rungs. Their segments have the numbers of the source's, so they are in the same Periods.
  private func rungs(of source: TrackDescription) -> [XMLElement] {
    guard let first = segments.first?.sequenceNumber, let last = segments.last?.sequenceNumber else { return [] }
    return manifest.epoch.playableRungs.compactMap { rung in
      guard let track = rung.window.inits[period.initVersion]?.tracks.first, track.timescale == source.timescale else {
        return nil
      }
      let own = rung.window.segments.filter { (first...last).contains($0.sequenceNumber) }
      let spans = spans(of: track, in: own)
      return spans.isEmpty ? nil : representation(track, .rung(rung), spans)
    }
  }

  /// The origin of a representation.
  private enum Maker {
    case source(Rendition)
    case rung(TranscodedRendition)

    var rendition: Rendition {
      switch self {
      case .source(let rendition): rendition
      case .rung(let rung): rung.rendition
      }
    }
  }

  /// The version of a track's init segment.
  private func version(of track: TrackDescription) -> Int {
    manifest.window.initVersion(Rendition(track), in: period.initVersion)
  }

  /// §5.3.2.4: the media continues from the end of the previous Period, with the same init segment. Not that of a track that
  /// began or changed with this Period.
  private func continuity(_ version: Int) -> [XMLElement] {
    guard let continued = period.continued, !period.changesTracks || version < period.initVersion else { return [] }
    let scheme = "urn:mpeg:dash:period-continuity:2015"
    return [XMLElement("SupplementalProperty", ["schemeIdUri": scheme, "value": String(continued)])]
  }

  /// §5.12: the wall-clock time of the Period's first media time. Each segment has its own in a `prft` box.
  private func referenceTime(_ track: TrackDescription) -> XMLElement {
    XMLElement(
      "ProducerReferenceTime",
      [
        "id": DASHManifest.referenceTimeID, "inband": "true", "type": "captured",
        "wallClockTime": DASHManifest.moment(period.wallStart), "presentationTime": offset(track),
      ], children: [manifest.askedClock])
  }

  /// §5.3.12: a parser can start at each chunk. Each chunk of audio can also be decoded by itself.
  private func resynchronization(_ track: TrackDescription) -> [XMLElement] {
    guard let chunk = manifest.chunk else { return [] }
    let distance = max(1, chunk.rescaled(to: track.timescale))
    return [XMLElement("Resync", ["type": track.kind == .audio ? "1" : "0", "dT": String(distance)])]
  }

  private func offset(_ track: TrackDescription) -> String {
    String(period.mediaStart.rescaled(to: track.timescale))
  }

  // MARK: Representation

  /// ISO/IEC 23009-1 §5.8.5.4. Up to six channels, the number of a configuration is that of its channels, and players know the
  /// older scheme. 6.1, 7.1 and 22.2 have other numbers (ISO/IEC 23091-3 table 10): 8 would be two channels.
  private func channelConfiguration(_ channels: Int) -> XMLElement {
    let common = "urn:mpeg:mpegB:cicp:ChannelConfiguration"
    let (scheme, value) =
      switch channels {
      case 7: (common, 11)
      case 8: (common, 12)
      case 24: (common, 13)
      default: ("urn:mpeg:dash:23003:3:audio_channel_configuration:2011", channels)
      }
    return XMLElement("AudioChannelConfiguration", ["schemeIdUri": scheme, "value": String(value)])
  }

  private func representation(
    _ track: TrackDescription, _ maker: Maker, _ spans: [LiveSegment.Listing]
  ) -> XMLElement {
    let rendition = maker.rendition
    let bandwidth =
      if case .rung(let rung) = maker { rung.window.bandwidth } else { manifest.window.bandwidth }
    let size = track.codec.codedSize
    let audio = track.codec.audio
    var children: [XMLElement] = []
    if let audio { children.append(channelConfiguration(audio.channels)) }
    children.append(segmentTemplate(track, maker, spans))
    return XMLElement(
      "Representation",
      [
        "id": rendition.rawValue, "codecs": track.codec.codecString,
        "bandwidth": String(bandwidth.steadyPeak(of: track.id)),
        "width": size.map { String($0.width) }, "height": size.map { String($0.height) }, "frameRate": frameRate(track),
        "sar": track.codec.videoFormat.map { ratio($0.sampleAspectRatio) },
        "audioSamplingRate": audio.map { String($0.sampleRate) },
      ], children: children)
  }

  /// Width to height of one sample (§5.3.7.2, RatioType).
  private func ratio(_ sample: SampleAspectRatio) -> String { "\(sample.horizontal):\(sample.vertical)" }

  /// An integer or a fraction (§5.3.7.3, FrameRateType).
  private func frameRate(_ track: TrackDescription) -> String? {
    guard track.kind == .video, let duration = track.frameDuration, duration > 0 else { return nil }
    let whole = track.timescale.quotientAndRemainder(dividingBy: duration)
    return whole.remainder == 0 ? String(whole.quotient) : "\(track.timescale)/\(duration)"
  }

  private func segmentTemplate(
    _ track: TrackDescription, _ maker: Maker, _ spans: [LiveSegment.Listing]
  ) -> XMLElement {
    let rendition = maker.rendition
    let window = if case .rung(let rung) = maker { rung.window } else { manifest.window }
    let version = window.initVersion(rendition, in: period.initVersion)
    let base = manifest.epoch.prefix + rendition.rawValue
    let early = manifest.availabilityOffset
    return XMLElement(
      "SegmentTemplate",
      [
        "timescale": String(track.timescale), "presentationTimeOffset": offset(track),
        "availabilityTimeOffset": early.map { Decimals.trimmed(thousandths: Int($0.rescaled(to: 1000))) },
        "availabilityTimeComplete": early == nil ? nil : "false",
        "initialization": "\(base)/\(MediaName.initSegment(version))",
        "media": "\(base)/\(MediaName.timePrefix(initVersion: version))$Time$.m4s",
      ], children: [XMLElement("SegmentTimeline", children: timeline(spans))])
  }

  /// Earliest presentation time and duration of each segment (§5.3.9.6). Equal durations are not merged with a repeat count.
  /// Entries are thus only added and removed, the only patch operations that all players apply alike.
  private func timeline(_ spans: [LiveSegment.Listing]) -> [XMLElement] {
    spans.suffix(tellsLast).map { XMLElement("S", ["t": String($0.start), "d": String($0.duration)]) }
  }
}

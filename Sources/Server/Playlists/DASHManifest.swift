internal import Basics
internal import FMP4
internal import NIOCore

/// A DASH manifest (ISO/IEC 23009-1 §5.3) of the one-track renditions: dynamic while the stream lives, static at its
/// end. One Period for each stretch without a discontinuity, one AdaptationSet a track, SegmentTimeline in ticks.
/// While groups of pictures are steady it also lists the segment in the making, whose chunks can be had as they come
/// (§5.3.9.5.3, DASH-IF IOP 5 low latency).
///
/// Segments are addressed by `$Time$`: libavformat (to 9.0 at least) counts `$Number$` of a live timeline from the
/// first listed segment and plays the oldest one again and again; and a track may lack samples in a segment.
struct DASHManifest {
  let epoch: EpochView
  let source: Source

  /// Who hands the manifest and its segments out.
  enum Source: Sendable, Hashable {
    /// This server: it tells the time, answers for segments in the making, and patches manifests.
    case server
    /// This server, of a recording: it tells the time, and what it lists is complete.
    case recording
    /// Whoever reads the folder of segments: complete files and nothing else.
    case folder
  }

  /// What is listed.
  let segments: [LiveSegment]

  init(epoch: EpochView, source: Source) {
    self.epoch = epoch
    self.source = source
    var segments = epoch.window.listed.filter { !$0.isOutage }
    if source == .server, let growing = epoch.window.announced { segments.append(growing) }
    self.segments = segments
  }

  var window: LiveWindow { epoch.window }

  /// Nobody publishes, or somebody does again and nothing of it is listed yet.
  private var awaitsMedia: Bool {
    guard !window.isInterrupted, let period = window.periods.last else { return true }
    return period.firstSequenceNumber > segments.last?.sequenceNumber ?? 0
  }

  /// The ProducerReferenceTime that latency is measured by.
  static let referenceTimeID = "0"

  /// The manifest as it is published at a time, in milliseconds since 1970.
  func root(publishTime: Int64) -> XMLElement {
    let head = window.isEnded ? attributesAtTheEnd(publishTime) : liveAttributes(publishTime)
    var children: [XMLElement] = []
    // While nobody publishes, players take whole manifests: the Period that comes next is too much for a patch.
    if !window.isEnded, !awaitsMedia, source == .server {
      children.append(
        XMLElement(
          "PatchLocation", ["ttl": String(Self.patchLifetime(targetDuration: target))],
          text: "manifest.mpp?from=\(publishTime)"))
    }
    if let latency { children.append(serviceDescription(latency)) }
    for period in keptPeriods(publishTime: publishTime, depth: steadyDepth) {
      children.append(XMLElement("Period", verbatim: period.text))
    }
    for period in window.periods {
      let inside = segments.filter { isIn(period, $0) }
      if !inside.isEmpty { children.append(DASHPeriod(manifest: self, period: period, segments: inside).element) }
    }
    if !window.isEnded { children += clocks(publishTime: publishTime) }
    return XMLElement("MPD", head, children: children)
  }

  func isIn(_ period: LiveWindow.Period, _ segment: LiveSegment) -> Bool {
    let next = window.periods.first { $0.ordinal == period.ordinal + 1 }
    return segment.sequenceNumber >= period.firstSequenceNumber
      && segment.sequenceNumber < (next?.firstSequenceNumber ?? .max)
  }

  // MARK: Attributes

  private var target: MediaTime { MediaTime(milliseconds: Int64(window.targetDuration ?? 2) * 1000) }

  /// As long as the longest segment of any track so far, in whole tenths of a second: audio is cut at whole frames, so its
  /// segments may be longer than the picture's. It seldom changes, and each change costs readers a whole manifest.
  private var longest: MediaTime {
    let milliseconds = max(target, window.longestSegment).rescaled(to: 1000)
    return MediaTime(milliseconds: (milliseconds &+ 99) / 100 &* 100)
  }

  /// How far back players may seek (timeShiftBufferDepth). It stays the same while somebody publishes, so that patches go
  /// on. While nobody does, it covers the whole outage: where the newest segment lies further back, dash.js believes that
  /// the clock is wrong, and never asks for a segment again. Segments can be had for longer than they are listed.
  /// Behind a long outage it reaches back over it to the Period before, until players have left that.
  private func depth(_ publishTime: Int64) -> MediaTime {
    if awaitsMedia { return steadyDepth + epoch.patience + MediaTime(milliseconds: 10_000) }
    guard let kept = keptPeriods(publishTime: publishTime, depth: steadyDepth).first,
      let next = window.periods.first(where: { $0.ordinal > kept.ordinal })
    else { return steadyDepth }
    return steadyDepth + MediaTime(nanoseconds: max(0, next.wallStart &- kept.end))
  }

  /// Where there was no outage lately.
  private var steadyDepth: MediaTime { window.listedLength + target }

  /// How often players take a manifest: once a segment, and more often while they wait for the first one of a publisher.
  private var updatePeriod: MediaTime { awaitsMedia ? MediaTime(milliseconds: 1000) : target }

  private static let namespace = "urn:mpeg:dash:schema:mpd:2011"

  /// The last one is DASH-IF IOP 5's for low latency.
  private var profiles: String {
    "urn:mpeg:dash:profile:isoff-live:2011,urn:mpeg:dash:profile:cmaf:2019"
      + (isInChunks && !window.isEnded ? ",http://www.dashif.org/guidelines/low-latency-live-v5" : "")
  }

  private func liveAttributes(_ publishTime: Int64) -> KeyValuePairs<String, String?> {
    [
      "xmlns": Self.namespace, "profiles": profiles, "id": epoch.id, "type": "dynamic",
      "minBufferTime": Self.duration(target), "maxSegmentDuration": Self.duration(longest),
      "availabilityStartTime": Self.moment(nanoseconds: epoch.availabilityStart),
      "publishTime": Self.moment(milliseconds: publishTime), "minimumUpdatePeriod": Self.duration(updatePeriod),
      "timeShiftBufferDepth": Self.duration(depth(publishTime)),
      "suggestedPresentationDelay": Self.duration(ordinaryDelay),
    ]
  }

  private func attributesAtTheEnd(_ publishTime: Int64) -> KeyValuePairs<String, String?> {
    [
      "xmlns": Self.namespace, "profiles": profiles, "id": epoch.id, "type": "static",
      "minBufferTime": Self.duration(target), "maxSegmentDuration": Self.duration(longest),
      "mediaPresentationDuration": Self.duration(presentationEnd),
      "publishTime": Self.moment(milliseconds: publishTime),
    ]
  }

  /// Where the presentation ends on its own timeline, which begins at availabilityStartTime.
  private var presentationEnd: MediaTime {
    guard let last = segments.last else { return .zero }
    return MediaTime(nanoseconds: last.wallStart &- epoch.availabilityStart) + last.duration
  }

  /// How far behind the live edge players of whole segments sit without stalls.
  private var ordinaryDelay: MediaTime { MediaTime(milliseconds: 3 * target.rescaled(to: 1000)) }

  // MARK: Low latency

  /// The length of the chunks in which the newest segment can be had while it is made; nil where it cannot be listed
  /// before it is complete.
  var chunk: MediaTime? {
    guard source == .server, !window.isEnded, window.segments.last?.announced != nil else { return nil }
    return window.partTarget
  }

  /// How long before its end the newest segment becomes available: but for its first chunk (§5.3.9.5.3).
  var availabilityOffset: MediaTime? {
    guard let chunk, let length = window.segments.last?.announced else { return nil }
    return max(.zero, length.converted(to: 1_000_000) - chunk)
  }

  /// Some listed segment could be had while it was made. Players keep the latency that they were told then: right after an
  /// outage the next segment's length is not known.
  private var isInChunks: Bool { source == .server && segments.contains { $0.announced != nil } }

  private struct Latency {
    var target: Int64
    var minimum: Int64
    var maximum: Int64
  }

  /// In milliseconds. A player of chunks learns of a segment up to one update period after its first chunk. It needs that
  /// chunk, the next while it fetches, and as much again for the network. A player of whole segments stays three of them
  /// behind.
  private var latency: Latency? {
    guard source == .server, !window.isEnded else { return nil }
    let update = target.rescaled(to: 1000)
    guard isInChunks, let chunkLength = window.partTarget?.rescaled(to: 1000) else {
      // At a hole in the timeline dash.js waits for as long as the hole is, unless it knows a maximum latency.
      return Latency(target: 3 &* update, minimum: 2 &* update, maximum: 5 &* update)
    }
    let aim = update &+ 4 &* chunkLength
    return Latency(
      target: aim, minimum: update &+ chunkLength, maximum: max(ordinaryDelay.rescaled(to: 1000), aim &+ update))
  }

  /// Annex K.
  private func serviceDescription(_ latency: Latency) -> XMLElement {
    XMLElement(
      "ServiceDescription", ["id": "0"],
      children: [
        XMLElement(
          "Latency",
          [
            "referenceId": Self.referenceTimeID, "target": String(latency.target), "max": String(latency.maximum),
            "min": String(latency.minimum),
          ]),
        XMLElement("PlaybackRate", ["max": "1.04", "min": "0.96"]),
      ])
  }

  /// For how many seconds after its publication a manifest can be patched: a manifest changes up to three times a
  /// segment, and `DASHHistory` keeps sixteen of them.
  static func patchLifetime(targetDuration: MediaTime) -> Int64 {
    targetDuration.rescaled(to: 1) &* Int64(DASHHistory.limit / 3)
  }

  // MARK: Text

  /// xs:duration in seconds.
  static func duration(_ time: MediaTime) -> String {
    "PT\(Decimals.trimmed(thousandths: Int(max(0, time.rescaled(to: 1000)))))S"
  }

  /// xs:dateTime.
  static func moment(nanoseconds: Int64) -> String {
    UTCText(nanosecondsSince1970: nanoseconds).internet
  }

  static func moment(milliseconds: Int64) -> String {
    moment(nanoseconds: milliseconds &* 1_000_000)
  }
}

internal import Base
package import FMP4
internal import NIOCore
package import Streams

/// A DASH manifest (ISO/IEC 23009-1 §5.3) of the one-track renditions: dynamic while the stream is live, static after its
/// end. One Period for each run without a discontinuity, one AdaptationSet per track, SegmentTimeline in ticks. While GOPs
/// are regular, it also lists the growing segment, whose chunks are available as they are made (§5.3.9.5.3, DASH-IF IOP 5
/// low latency).
///
/// Segments are addressed by `$Time$`. With `$Number$`, libavformat (to 9.0 at least) counts from the first listed segment
/// of a live timeline and plays the oldest one again and again. Also, a track may lack samples in a segment.
package struct DASHManifest {
  let epoch: EpochView
  let source: Source

  /// The server of the manifest and its segments.
  package enum Source: Sendable, Hashable {
    /// This server, live: it serves its clock, growing segments and manifest patches.
    case server
    /// This server, for a recording: it serves its clock; all listed segments are complete.
    case recording
    /// A web server that serves the segment folder: complete files only.
    case folder
  }

  /// The listed segments.
  let segments: [LiveSegment]

  package init(epoch: EpochView, source: Source) {
    self.epoch = epoch
    self.source = source
    var segments = epoch.window.listed.filter { !$0.isOutage }
    if source == .server, let growing = epoch.window.announced { segments.append(growing) }
    self.segments = segments
  }

  var window: LiveWindow { epoch.window }

  /// There is no publisher, or a new one without a listed segment.
  private var awaitsMedia: Bool {
    guard !window.isInterrupted, let period = window.periods.last else { return true }
    return period.firstSequenceNumber > segments.last?.sequenceNumber ?? 0
  }

  /// The id of the ProducerReferenceTime, from which players measure latency.
  static let referenceTimeID = "0"

  /// The root element of the manifest with this publish time.
  package func root(publishTime: WallTime) -> XMLElement {
    let head = window.isEnded ? attributesAtTheEnd(publishTime) : liveAttributes(publishTime)
    var children: [XMLElement] = []
    // Without a publisher, players load whole manifests: a patch cannot add the next Period.
    if !window.isEnded, !awaitsMedia, source == .server {
      children.append(
        XMLElement(
          "PatchLocation", ["ttl": String(Self.patchLifetime(targetDuration: target))],
          text: "manifest.mpp?from=\(publishTime.milliseconds)"))
    }
    if let latency { children += serviceDescriptions(latency) }
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

  /// The longest segment of any track so far, rounded up to tenths of a second. Audio is cut at whole frames, so its segments
  /// may be longer than those of the video. The value seldom changes; each change costs clients a whole manifest.
  private var longest: MediaTime {
    let milliseconds = max(target, window.longestSegment).rescaled(to: 1000)
    return MediaTime(milliseconds: (milliseconds &+ 99) / 100 &* 100)
  }

  /// How far back players may seek (timeShiftBufferDepth). Constant while there is a publisher, so that patches continue.
  /// Without a publisher it covers the whole outage: when the newest segment is further back, dash.js takes the clock for
  /// wrong and never requests a segment again. Segments stay available longer than they are listed. After a long outage it
  /// reaches back to the previous Period, until players have left that.
  private func depth(_ publishTime: WallTime) -> MediaTime {
    if awaitsMedia { return steadyDepth + epoch.patience + MediaTime(milliseconds: 10_000) }
    guard let kept = keptPeriods(publishTime: publishTime, depth: steadyDepth).first,
      let next = window.periods.first(where: { $0.ordinal > kept.ordinal })
    else { return steadyDepth }
    return steadyDepth + MediaTime(nanoseconds: max(0, next.wallStart &- kept.end))
  }

  /// The depth without a recent outage.
  private var steadyDepth: MediaTime { window.listedLength + target }

  /// How often players load the manifest: once per segment; more often while they wait for a publisher's first segment.
  private var updatePeriod: MediaTime { awaitsMedia ? MediaTime(milliseconds: 1000) : target }

  private static let namespace = "urn:mpeg:dash:schema:mpd:2011"

  /// The last one is the low-latency profile of DASH-IF IOP 5.
  private var profiles: String {
    "urn:mpeg:dash:profile:isoff-live:2011,urn:mpeg:dash:profile:cmaf:2019"
      + (isInChunks && !window.isEnded ? ",http://www.dashif.org/guidelines/low-latency-live-v5" : "")
  }

  private func liveAttributes(_ publishTime: WallTime) -> KeyValuePairs<String, String?> {
    [
      "xmlns": Self.namespace, "profiles": profiles, "id": epoch.id, "type": "dynamic",
      "minBufferTime": Self.duration(target), "maxSegmentDuration": Self.duration(longest),
      "availabilityStartTime": Self.moment(epoch.availabilityStart),
      "publishTime": Self.moment(publishTime), "minimumUpdatePeriod": Self.duration(updatePeriod),
      "timeShiftBufferDepth": Self.duration(depth(publishTime)),
      "suggestedPresentationDelay": Self.duration(ordinaryDelay),
    ]
  }

  private func attributesAtTheEnd(_ publishTime: WallTime) -> KeyValuePairs<String, String?> {
    [
      "xmlns": Self.namespace, "profiles": profiles, "id": epoch.id, "type": "static",
      "minBufferTime": Self.duration(target), "maxSegmentDuration": Self.duration(longest),
      "mediaPresentationDuration": Self.duration(presentationEnd),
      "publishTime": Self.moment(publishTime),
    ]
  }

  /// The end of the presentation, relative to availabilityStartTime.
  private var presentationEnd: MediaTime {
    guard let last = segments.last else { return .zero }
    return MediaTime(nanoseconds: last.wallStart &- epoch.availabilityStart) + last.duration
  }

  /// How far behind the live edge players of whole segments play without stalls.
  private var ordinaryDelay: MediaTime { MediaTime(milliseconds: 3 * target.rescaled(to: 1000)) }

  // MARK: Low latency

  /// The length of the chunks of the growing segment. Nil when the segment cannot be listed before it is complete.
  var chunk: MediaTime? {
    guard source == .server, !window.isEnded, window.segments.last?.announced != nil else { return nil }
    return window.partTarget
  }

  /// How long before its end the newest segment becomes available: its length without the first chunk (§5.3.9.5.3).
  var availabilityOffset: MediaTime? {
    guard let chunk, let length = window.segments.last?.announced else { return nil }
    return max(.zero, length.converted(to: 1_000_000) - chunk)
  }

  /// A listed segment was available in chunks. Players keep the latency from that time: right after an outage the length of the
  /// next segment is unknown.
  private var isInChunks: Bool { source == .server && segments.contains { $0.announced != nil } }

  private struct Latency {
    var target: Int64
    var minimum: Int64
    var maximum: Int64
  }

  /// In milliseconds. A player of chunks learns of a segment up to one update period after its first chunk. It needs that
  /// chunk, the next one while it loads, and twice as much for the network. A player of whole segments stays three segments
  /// behind.
  private var latency: Latency? {
    guard source == .server, !window.isEnded else { return nil }
    let update = target.rescaled(to: 1000)
    guard isInChunks, let chunkLength = window.partTarget?.rescaled(to: 1000) else {
      // At a gap in the timeline dash.js waits for the length of the gap, unless it knows a maximum latency.
      return Latency(target: 3 &* update, minimum: 2 &* update, maximum: 5 &* update)
    }
    let aim = update &+ 4 &* chunkLength
    return Latency(
      target: aim, minimum: update &+ chunkLength, maximum: max(ordinaryDelay.rescaled(to: 1000), aim &+ update))
  }

  /// ServiceDescriptions (Annex K) with one latency: for all players, and for those that know the scope of low latency (ETSI
  /// TS 103 285 §10.20). dash.js follows the second one, ExoPlayer the last one: both play slower when they are too near to the
  /// edge. Shaka Player must not. It measures from a point that lies `suggestedPresentationDelay` behind its edge already, so it
  /// would play slower until it is behind by both. To 5.2.7 it follows none of several; later versions follow the first one.
  private func serviceDescriptions(_ latency: Latency) -> [XMLElement] {
    let lowLatency = XMLElement("Scope", ["schemeIdUri": "urn:dvb:dash:lowlatency:scope:2019"])
    return [
      serviceDescription("0", latency, slowest: "1"),
      serviceDescription("1", scope: [lowLatency], latency, slowest: "0.96"),
    ]
  }

  private func serviceDescription(
    _ id: String, scope: [XMLElement] = [], _ latency: Latency, slowest: String
  ) -> XMLElement {
    XMLElement(
      "ServiceDescription", ["id": id],
      children: scope + [
        XMLElement(
          "Latency",
          [
            "referenceId": Self.referenceTimeID, "target": String(latency.target), "max": String(latency.maximum),
            "min": String(latency.minimum),
          ]),
        XMLElement("PlaybackRate", ["max": "1.04", "min": slowest]),
      ])
  }

  /// How many seconds after its publication a manifest can be patched. A manifest changes up to three times per segment, and
  /// `DASHHistory` keeps sixteen.
  static func patchLifetime(targetDuration: MediaTime) -> Int64 {
    targetDuration.rescaled(to: 1) &* Int64(DASHHistory.limit / 3)
  }

  // MARK: Text

  /// xs:duration in seconds.
  static func duration(_ time: MediaTime) -> String {
    "PT\(Decimals.trimmed(thousandths: Int(max(0, time.rescaled(to: 1000)))))S"
  }

  /// xs:dateTime.
  static func moment(_ time: WallTime) -> String { UTCText(time).internet }
}

internal import FMP4
package import NIOCore
package import Streams

/// A live media playlist (RFC 8216bis §4.4.3), rendered from a window. Uses no clock, lock or socket.
package struct HLSMediaPlaylist {
  package let window: LiveWindow
  package var rendition = Rendition.interleaved
  /// Nil for a server without blocking reload: an ordinary playlist of whole segments.
  var lowLatency: LowLatency?
  /// `gap` has numbers of its own, and a segment in front.
  var start = HLSStart.wholeSegment

  package init(
    window: LiveWindow, rendition: Rendition = .interleaved, lowLatency: LowLatency? = nil,
    start: HLSStart = .wholeSegment
  ) {
    (self.window, self.rendition, self.lowLatency, self.start) = (window, rendition, lowLatency, start)
  }

  /// The low-latency features of a playlist.
  package struct LowLatency {
    var addressing = StreamSettings.PartAddressing.url
    /// The other renditions of the presentation, for EXT-X-RENDITION-REPORT.
    var siblings: [Sibling] = []
    /// Replaces segments that the client already has with EXT-X-SKIP, if there are any.
    var isDelta = false
  }

  /// Another rendition of the presentation.
  struct Sibling {
    var rendition: Rendition
    /// The window that holds it.
    var window: LiveWindow
  }

  /// CAN-SKIP-UNTIL, and how far back parts are listed, in target durations.
  static let skipTargets = 6
  static let partTargets = 3

  /// URIs are relative to the playlist: `…/{epoch}/{rendition}/index.m3u8`.
  package func render() -> ByteBuffer {
    let listed = window.listed
    let growing = growingSegment
    // The end leaves the parts where they are: a player that has some of a segment fetches the others, not all of it again.
    let offer = window.partTarget == nil ? nil : lowLatency
    let skipped = !window.isEnded && offer?.isDelta == true ? skippable(listed, growing) : 0
    var out = ByteBuffer()
    out.reserveCapacity(512 + listed.count * 96 + (offer == nil ? 0 : 4096))
    // EXT-X-SKIP needs version 9, EXT-X-GAP 8, EXT-X-MAP 6 (§8).
    let gap = gapInFront(listed)
    let hasGap = gap != nil || window.endedUnresumed || listed.contains(where: isGap)
    let version = skipped > 0 ? 9 : hasGap ? 8 : 6
    out.writeString("#EXTM3U\n#EXT-X-VERSION:\(version)\n")
    out.writeString("#EXT-X-TARGETDURATION:\(target)\n")
    if let offer { writeServerControl(offer, &out) }
    let first = window.firstListedNumber + start.offset - (gap == nil ? 0 : 1)
    out.writeString("#EXT-X-MEDIA-SEQUENCE:\(first)\n")
    let breaks = window.discontinuitySequence(of: rendition)
    if breaks > 0 { out.writeString("#EXT-X-DISCONTINUITY-SEQUENCE:\(breaks)\n") }
    if window.isIndependent(rendition) { out.writeStaticString("#EXT-X-INDEPENDENT-SEGMENTS\n") }
    if skipped > 0 { out.writeString("#EXT-X-SKIP:SKIPPED-SEGMENTS=\(skipped)\n") }
    var head = HLSSegmentLines()
    if let gap {
      if listed.isEmpty { out.writeString("#EXT-X-START:TIME-OFFSET=\(Decimals.fixed(gap, digits: 6))\n") }
      // It has no media, but each segment has a map (RFC 8216bis §3.1.1).
      let version = (listed.first ?? growing).flatMap { initVersion(of: $0) }
      head.writeHead(followsDiscontinuity: false, initVersion: version, wallStart: nil, &out)
      write(gap, &out)
    }
    let firstWithParts = offer == nil ? Int.max : firstSegmentWithParts(listed, growing)
    for segment in listed.dropFirst(skipped) {
      writeHead(of: segment, &head, &out)
      if let offer, segment.sequenceNumber >= firstWithParts { writeParts(of: segment, offer, &out) }
      writeSegment(segment, &out)
    }
    if let offer {
      if let growing {
        writeHead(of: growing, &head, &out)
        writeParts(of: growing, offer, &out)
      }
      if !window.isEnded {
        writeHint(offer, &out)
        for sibling in offer.siblings { writeReport(of: sibling, &out) }
      }
    }
    if window.endedUnresumed { writeLost(&head, &out) }
    if window.isEnded { out.writeStaticString("#EXT-X-ENDLIST\n") }
    return out
  }

  /// Writes a gap in place of what another process listed: hls.js takes a list without segments for a broken one, and would ask
  /// on after the end.
  private func writeLost(_ head: inout HLSSegmentLines, _ out: inout ByteBuffer) {
    head.writeHead(followsDiscontinuity: true, initVersion: nil, wallStart: window.lostStart, &out)
    HLSSegmentLines.write(
      .number(window.nextSequenceNumber), duration: MediaTime(milliseconds: Int64(target) * 1000), isGap: true, &out)
  }

  /// Writes the lines of whole segments only.
  package func writeSegments(_ segments: some Sequence<LiveSegment>, _ out: inout ByteBuffer) {
    var head = HLSSegmentLines()
    for segment in segments {
      writeHead(of: segment, &head, &out)
      writeSegment(segment, &out)
    }
  }

  private var target: Int { window.targetDuration ?? 1 }

  private var growingSegment: LiveSegment? {
    guard let newest = window.segments.last, !newest.isComplete, !newest.fragments.isEmpty else { return nil }
    return newest
  }

  // MARK: Tags

  private func writeServerControl(_ offer: LowLatency, _ out: inout ByteBuffer) {
    guard let partTarget = window.partTarget(of: rendition) else { return }
    // The same in all renditions, so that players hold back all of them equally.
    let longest = offer.siblings.compactMap { $0.window.partTarget(of: $0.rendition) }.reduce(partTarget, max)
    let hold = MediaTime(ticks: longest.ticks &* 3, timescale: longest.timescale)
    let holdBack = "PART-HOLD-BACK=\(Decimals.fixed(hold, digits: 6)),HOLD-BACK=\(3 * target)"
    // Nothing is awaited or skipped at the end, but a list with parts needs PART-HOLD-BACK (§4.4.3.8).
    out.writeString(
      window.isEnded
        ? "#EXT-X-SERVER-CONTROL:\(holdBack)\n"
        : "#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,\(holdBack),CAN-SKIP-UNTIL=\(Self.skipTargets * target)\n")
    out.writeString("#EXT-X-PART-INF:PART-TARGET=\(Decimals.fixed(partTarget, digits: 6))\n")
  }

  /// The length of the segment without media in front of the first one; nil where there is none, or none any more. It may go
  /// when three target durations are listed behind it (§6.2.2).
  private func gapInFront(_ listed: Slice<SegmentLog>) -> MediaTime? {
    guard start == .gap, lowLatency != nil, window.isForeseen, window.firstListedNumber == 1 else { return nil }
    let length = listed.reduce(MediaTime.zero) { $0 + $1.duration }
    return length < MediaTime(milliseconds: Int64(3 * target) * 1000) ? window.partTarget(of: rendition) : nil
  }

  /// Writes it. It has a part, since hls.js looks for the first one before what it plays.
  private func write(_ gap: MediaTime, _ out: inout ByteBuffer) {
    let length = Decimals.fixed(gap, digits: 6)
    let part = MediaName.part(PartPosition(segment: 0, part: 0))
    out.writeString("#EXT-X-PART:DURATION=\(length),URI=\"\(part)\",GAP=YES\n#EXT-X-GAP\n#EXTINF:\(length),\n0.m4s\n")
  }

  private func writeSegment(_ segment: LiveSegment, _ out: inout ByteBuffer) {
    var duration = segment.duration
    let isGap = isGap(segment)
    if !isGap, let span = window.layout(rendition, of: segment)?.trackID.flatMap(segment.span) {
      duration = MediaTime(ticks: span.duration &+ span.addition, timescale: span.timescale)
    }
    HLSSegmentLines.write(window.name(of: segment, in: rendition), duration: duration, isGap: isGap, &out)
  }

  private func writeHead(of segment: LiveSegment, _ lines: inout HLSSegmentLines, _ out: inout ByteBuffer) {
    lines.writeHead(
      followsDiscontinuity: window.breaks(rendition, before: segment), initVersion: initVersion(of: segment),
      wallStart: segment.wallStart(of: window.layout(rendition, of: segment)?.trackID), &out)
  }

  /// Nil when the rendition has no media in the segment.
  private func initVersion(of segment: LiveSegment) -> Int? {
    window.layout(rendition, of: segment) == nil ? nil : window.initVersion(rendition, of: segment)
  }

  /// The stream had no media of the rendition during the segment.
  private func isGap(_ segment: LiveSegment) -> Bool {
    guard !segment.isOutage, let layout = window.layout(rendition, of: segment) else { return true }
    return layout.trackID.map { segment.span(of: $0) == nil } ?? false
  }

  private func writeParts(of segment: LiveSegment, _ offer: LowLatency, _ out: inout ByteBuffer) {
    if segment.isOutage, segment.duration <= LiveWindow.longestFirstGap { return writeGapParts(of: segment, &out) }
    switch window.layout(rendition, of: segment) {
    case .interleaved: write(segment.parts(of: nil, isAudio: isAudio(segment)), segment, offer, &out)
    case .track(let track):
      write(segment.parts(of: track.id, isAudio: track.kind == .audio), segment, offer, &out)
    case nil: break
    }
  }

  /// Those of the beginning of an outage: for hls.js a list ends with its last part.
  private func writeGapParts(of segment: LiveSegment, _ out: inout ByteBuffer) {
    guard let target = window.partTarget(of: rendition)?.nanoseconds, target > 0 else { return }
    let count = max(1, (segment.duration.nanoseconds &+ target &- 1) / target)
    let length = Decimals.fixed(MediaTime(nanoseconds: segment.duration.nanoseconds / count), digits: 6)
    for part in 0..<Int(count) {
      let name = MediaName.part(PartPosition(segment: segment.sequenceNumber, part: part))
      out.writeString("#EXT-X-PART:DURATION=\(length),URI=\"\(name)\",GAP=YES\n")
    }
  }

  private func isAudio(_ segment: LiveSegment) -> Bool {
    window.inits[segment.initVersion]?.tracks.allSatisfy { $0.kind == .audio } ?? false
  }

  private func write(_ parts: [LivePart], _ segment: LiveSegment, _ offer: LowLatency, _ out: inout ByteBuffer) {
    for part in parts {
      out.writeString("#EXT-X-PART:DURATION=\(Decimals.fixed(part.duration, digits: 6)),URI=\"")
      switch offer.addressing {
      case .url:
        out.writeString("\(window.name(ofPart: part.index, of: segment, in: rendition))\"")
      case .byterange:
        window.name(of: segment, in: rendition).write(&out)
        out.writeString("\",BYTERANGE=\"\(part.bytes.count)@\(part.bytes.lowerBound)\"")
      }
      out.writeString(part.isIndependent ? ",INDEPENDENT=YES\n" : "\n")
    }
  }

  private func writeHint(_ offer: LowLatency, _ out: inout ByteBuffer) {
    // The track is gone.
    if rendition.kind != nil, let tracks = window.currentInit?.tracks, rendition.track(in: tracks) == nil { return }
    // Players would combine a hinted part with the init segment that they have.
    if let version = window.nextInit(rendition) {
      out.writeString("#EXT-X-PRELOAD-HINT:TYPE=MAP,URI=\"\(MediaName.initSegment(version))\"\n")
      return
    }
    let next = window.nextPart(of: rendition)
    switch offer.addressing {
    case .url:
      out.writeString("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"\(MediaName.part(next))\"\n")
    case .byterange:
      var start = 0
      if let growing = growingSegment, growing.sequenceNumber == next.segment, next.part > 0 {
        start = window.layout(rendition, of: growing).map { growing.byteCount(of: $0.trackID) } ?? 0
      }
      let name = window.expectedName(ofSegment: next.segment, in: rendition)
      out.writeString("#EXT-X-PRELOAD-HINT:TYPE=PART,URI=\"\(name.text)\",BYTERANGE-START=\(start)\n")
    }
  }

  private func writeReport(of other: Sibling, _ out: inout ByteBuffer) {
    let (sibling, window) = (other.rendition, other.window)
    let edge = window.edge(of: sibling)
    var last = PartPosition(segment: edge.segment, part: edge.part - 1)
    if last.part < 0 {
      guard let before = window.segment(edge.segment - 1) else { return }
      last = PartPosition(
        segment: before.sequenceNumber, part: max(0, window.partCount(of: sibling, in: before) - 1))
    }
    out.writeString(
      "#EXT-X-RENDITION-REPORT:URI=\"../\(sibling.rawValue)/\(MediaName.playlist)\(start.query)\",LAST-MSN=\(last.segment + start.offset)"
        + ",LAST-PART=\(last.part)\n")
  }

  // MARK: What is old

  /// How many segments lie wholly before the Skip Boundary (§4.4.3.8).
  private func skippable(_ listed: Slice<SegmentLog>, _ growing: LiveSegment?) -> Int {
    let boundary = MediaTime(milliseconds: Int64(Self.skipTargets * target) * 1000)
    var behind = growing?.duration.converted(to: 1_000_000) ?? .zero
    var kept = 0
    for segment in listed.reversed() {
      if behind >= boundary { break }
      behind = behind + segment.duration
      kept += 1
    }
    return listed.count - kept
  }

  /// The first segment with listed parts: parts reach back three target durations from the end.
  private func firstSegmentWithParts(_ listed: Slice<SegmentLog>, _ growing: LiveSegment?) -> Int {
    let limit = MediaTime(milliseconds: Int64(Self.partTargets * target) * 1000)
    var behind = growing?.duration.converted(to: 1_000_000) ?? .zero
    var first = window.nextSequenceNumber
    for segment in listed.reversed() {
      if behind >= limit { break }
      behind = behind + segment.duration
      first = segment.sequenceNumber
    }
    return first
  }
}

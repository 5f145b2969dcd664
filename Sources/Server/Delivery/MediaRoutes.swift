internal import FMP4
internal import HTTP
internal import NIOCore
internal import NIOHTTP1
internal import Playlists
internal import Recording
internal import Storage
internal import Streams

/// `/live/{stream}/{epoch}/{rendition}/…`: media playlists, init segments, segments and parts. A request for media that is due
/// next waits.
struct MediaRoutes {
  let stream: LiveStream
  let epoch: String
  let rendition: Rendition
  let eventLoop: any EventLoop
  /// Responses that depend only on the address are shared between requests for it.
  let sharing: Cacheability
  /// The media on disk.
  var archive: RecordingArchive?
  var partReloads = PartReloads()
  /// What the client's first list was.
  var start = HLSStart.wholeSegment

  func respond(to request: HTTPRequest, asking asked: MediaName.Asked) -> HTTPAnswer {
    guard let view = stream.view(ofEpoch: epoch), let window = view.epoch.window(of: rendition) else {
      return .now(
        Problem(.epochEnded, "This part of the stream \"\(stream.name)\" has ended and is no longer available.")
          .response)
    }
    switch asked {
    case .playlist:
      var routes = self
      routes.start = HLSStart(request.query)
      return routes.playlist(request, view, window)
    case .keyFrames:
      guard rendition.kind == .video else { return .now(missing) }
      return stream.rendered(.keyFrames(rendition), of: view, on: eventLoop).shared(sharing)
    case .programme: return rendition.isRung ? .now(missing) : programme(window)
    case .initSegment(let version):
      if let initSegment = initSegment(version, window) { return .now(initSegment, sharing) }
      let kept = view.epoch.keptInits.first { $0.rendition == rendition && $0.version == version }
      return .now(kept.map(initSegment) ?? oldInitSegment(version) ?? missing)
    case .segment(let number): return segment(number, request, window)
    case .segmentAt(let time, let version):
      guard rendition.kind != nil else { return .now(missing) }
      guard let number = window.sequenceNumber(ofTime: time, rendition, initVersion: version) else {
        return oldSegment(at: time, initVersion: version, window)
      }
      // A segment expected at that time may begin at another time, or with other parameters.
      return segment(number, request, window) { $0.sequenceNumber(ofTime: time, rendition, initVersion: version) }
    case .part(let position): return part(position, window).shared(sharing)
    case .firstPart(let number, let version):
      guard let segment = window.segment(number), window.changesInit(rendition, at: segment),
        segment.initVersion == version,
        let response = part(PartPosition(segment: number, part: 0), in: window)
      else { return .now(missing) }
      return .now(response, sharing)
    case .playable(let number): return playable(number, window)
    }
  }

  var missing: HTTPResponse { Problem.nothingHere.response }

  /// A request for the next media waits this long: three target durations (RFC 8216bis §6.2.5.2).
  private func patience(_ window: LiveWindow) -> MediaTime {
    MediaTime(milliseconds: 3000 * Int64(window.targetDuration ?? 4))
  }

  /// Waits for at most `time`, by default as long as for the next media, then responds from the window at that moment.
  private func when(
    _ condition: WaitQueue.Condition, _ window: LiveWindow, atMost time: MediaTime? = nil,
    _ answer: @escaping @Sendable (StreamView, LiveWindow) -> HTTPAnswer
  ) -> HTTPAnswer {
    stream.wait(for: condition, on: eventLoop, atMost: time ?? patience(window)).answer { view in
      guard let view = view.epoch.id == epoch ? view : stream.view(ofEpoch: epoch),
        let window = view.epoch.window(of: rendition)
      else { return .now(missing) }
      return answer(view, window)
    }
  }

  // MARK: Playlists

  private func playlist(_ request: HTTPRequest, _ view: StreamView, _ window: LiveWindow) -> HTTPAnswer {
    var directives: HLSDirectives
    do throws(HLSDirectives.Malformed) {
      directives = try HLSDirectives(request.query)
    } catch {
      return .now(Problem(.malformedQuery, error.detail).response)
    }
    directives.goal = directives.goal?.lower(by: start.offset)
    if directives.goal == nil, start.isEarly(view.epoch.window), view.epoch.hasParts(rendition) {
      return partsAlone(directives, window).shared(sharing)
    }
    guard !window.segments.isEmpty, window.targetDuration != nil else {
      return beginning(directives, window).shared(sharing)
    }
    switch directives.goal {
    case nil: return playlist(directives, view, window).shared(sharing)
    case .part(let position)?:
      let (reloads, name) = (partReloads, playlistName)
      reloads.note(request, playlist: name, segment: position.segment)
      return playlist(directives, view, window, at: .part(position), .awaited).shared(sharing)
        .followed { reloads.note($0, playlist: name, segment: position.segment) }
    case .segment(let number)?:
      // Not shared, because its meaning depends on the client.
      guard partReloads.meansFirstPart(request, playlist: playlistName, segment: number) else {
        return playlist(directives, view, window, at: .segment(number), .awaited)
      }
      directives.goal = .part(PartPosition(segment: number, part: 0))
      return playlist(directives, view, window, at: .part(PartPosition(segment: number, part: 0)), .personal)
    }
  }

  private var playlistName: String { "\(stream.name)/\(epoch)/\(rendition.rawValue)" }

  /// The present playlist, as soon as it has a segment.
  private func playlist(_ directives: HLSDirectives, _ view: StreamView, _ window: LiveWindow) -> HTTPAnswer {
    guard !window.listsMedia, !window.isEnded else { return rendered(directives, .current, view) }
    // A rung that is late on a busy machine is named by the multivariant playlist before it has a whole segment.
    let first = WaitQueue.Condition.segment(window.edge(of: rendition).segment, rendition, epoch: epoch)
    return when(rendition.isRung ? first : .release, window, atMost: LiveRoutes.patience) { view, window in
      !window.listsMedia && !window.isEnded
        ? .now(Problem.notYet(stream.name).response) : rendered(directives, .current, view)
    }
  }

  /// The playlist of parts without a whole segment, as soon as this rendition has a part.
  private func partsAlone(_ directives: HLSDirectives, _ window: LiveWindow) -> HTTPAnswer {
    when(.part(window.firstPart, rendition, epoch: epoch), window, atMost: LiveRoutes.patience) { view, window in
      let hasPart = window.hasReached(window.firstPart, in: rendition) && window.targetDuration != nil
      guard hasPart || window.isEnded else { return .now(Problem.notYet(stream.name).response) }
      return rendered(directives, .current, view)
    }
  }

  private func rendered(
    _ directives: HLSDirectives, _ form: PlaylistCache.Form, _ view: StreamView
  ) -> HTTPAnswer {
    // Beginning with parts is no other list.
    let kind = PlaylistCache.Kind.media(
      rendition, form, isDelta: directives.skips, from: start == .gap ? .gap : .wholeSegment)
    return stream.rendered(kind, of: view, on: eventLoop)
  }

  /// The playlist that contains the goal, when it exists.
  private func playlist(
    _ directives: HLSDirectives, _ view: StreamView, _ window: LiveWindow, at goal: HLSDirectives.Goal,
    _ form: PlaylistCache.Form
  ) -> HTTPAnswer {
    switch directives.verdict(window, rendition) {
    case .now: return rendered(directives, form, view)
    case .tooFar:
      let edge = window.edge(of: rendition)
      return .now(
        Problem(
          .playlistTooFarAhead,
          "\(goal.lower(by: -start.offset)) lies too far ahead of segment \(edge.segment + start.offset), part \(edge.part).",
          help: "Load the playlist without _HLS_msn."
        ).response)
    case .wait:
      return when(goal.condition(rendition, epoch: epoch), window) { view, window in
        window.hasReached(goal, in: rendition) || window.isEnded || view.hasLetGo
          ? rendered(directives, form, view) : .now(late(window))
      }
    }
  }

  /// The window has no segment. Players of an epoch that another process began know its playlists already, so they wait for it to
  /// continue, and get the final list where it does not.
  private func beginning(_ directives: HLSDirectives, _ window: LiveWindow) -> HTTPAnswer {
    let condition = directives.goal == nil ? WaitQueue.Condition.release : .beginning
    if window.endedUnresumed, let view = stream.view(ofEpoch: epoch) { return rendered(directives, .current, view) }
    guard window.isResumed, !window.isEnded else { return .now(Problem.notYet(stream.name).response) }
    return when(condition, window, atMost: LiveRoutes.patience) { view, window in
      if window.endedUnresumed { return rendered(directives, .current, view) }
      guard !window.segments.isEmpty, directives.goal != nil || window.listsMedia else {
        return .now(Problem.notYet(stream.name).response)
      }
      return rendered(directives, directives.goal == nil ? .current : .awaited, view)
    }
  }

  /// The publisher is stuck or away.
  private func late(_ window: LiveWindow) -> HTTPResponse {
    Problem(
      .notYet, "The stream \"\(stream.name)\" received no media for \(3 * (window.targetDuration ?? 4)) s.",
      help: "Try again in a second.", retryAfter: 1
    ).response
  }

  // MARK: Media

  private func initSegment(_ version: Int, _ window: LiveWindow) -> HTTPResponse? {
    initBytes(version, window).map { .media([.bytes($0)], type: type, cache: .immutable) }
  }

  private func initBytes(_ version: Int, _ window: LiveWindow) -> ByteBuffer? {
    window.inits[version]?.bytes(of: rendition)
  }

  private func initSegment(_ kept: KeptInit) -> HTTPResponse {
    .media([.bytes(ByteBuffer(bytes: kept.bytes))], type: type, cache: .immutable)
  }

  /// A complete segment after its init segment, playable by itself.
  private func playable(_ number: Int, _ window: LiveWindow) -> HTTPAnswer {
    if let response = playable(number, in: window) { return .now(response, sharing) }
    if window.segment(number) == nil, number < window.nextSequenceNumber { return oldPlayable(number) }
    guard number == window.nextSequenceNumber || number == window.segments.last?.sequenceNumber, !window.isEnded else {
      return .now(missing)
    }
    return when(.segment(number, rendition, epoch: epoch), window) { _, window in
      .now(
        playable(number, in: window)
          ?? (window.hasReached(.segment(number), in: rendition) || window.isEnded ? missing : late(window)))
    }.shared(sharing)
  }

  private func playable(_ number: Int, in window: LiveWindow) -> HTTPResponse? {
    guard let segment = window.segment(number), segment.isComplete, let layout = layout(of: segment, window),
      let head = initBytes(segment.initVersion, window)
    else { return nil }
    return .media(
      [.bytes(head)] + segment.pieces(of: layout.trackID), type: type, cache: .immutable,
      entityTag: playableTag(number))
  }

  func playableTag(_ number: Int) -> String { "\"\(epoch)-\(rendition.rawValue)-\(number).mp4\"" }

  var type: ContentType { rendition.kind == .audio && !rendition.isRung ? .audioMP4 : .mp4 }

  /// A part that exists, or the next one once it is complete.
  private func part(_ position: PartPosition, _ window: LiveWindow) -> HTTPAnswer {
    if isRenamed(position, window) { return .now(lost) }
    if let response = part(position, in: window) { return .now(response) }
    if position.segment < window.firstSequenceNumber { return .now(lost) }
    let isNext = position == window.edge(of: rendition) || position == window.nextPart(of: rendition)
    guard isNext, !window.isEnded else { return .now(missing) }
    return when(.part(position, rendition, epoch: epoch), window) { _, window in
      if isRenamed(position, window) { return .now(lost) }
      if let response = part(position, in: window) { return .now(response) }
      if window.hasReached(position, in: rendition) || window.isEnded { return .now(missing) }
      // After a second 503 for a hinted part, Shaka Player assumes the end of the programme. After an empty part it continues.
      return .now(window.isInterrupted ? lost : late(window))
    }
  }

  /// Playlists name the part differently than the hint did.
  private func isRenamed(_ position: PartPosition, _ window: LiveWindow) -> Bool {
    position.part == 0 && window.segment(position.segment).map { window.changesInit(rendition, at: $0) } ?? false
  }

  private func part(_ position: PartPosition, in window: LiveWindow) -> HTTPResponse? {
    guard let segment = window.segment(position.segment) else { return nil }
    let tag = "\"\(epoch)-\(rendition.rawValue)-\(position.segment).\(position.part)\""
    if segment.isOutage, position.part == 0 { return emptyFragment(in: segment, window, tag) }
    guard let layout = layout(of: segment, window),
      let pieces = segment.pieces(ofPart: position.part, of: layout.trackID)
    else { return nil }
    return .media(pieces, type: type, cache: .immutable, entityTag: tag)
  }

  /// A gap, for players that request it: a fragment without samples. libavformat 5.1 and GStreamer do not know EXT-X-GAP, and
  /// hlsdemux2 stops at a segment without a time. Other players request the part that EXT-X-PRELOAD-HINT named before the outage.
  private func emptyFragment(in segment: LiveSegment, _ window: LiveWindow, _ tag: String) -> HTTPResponse {
    let tracks = window.inits[segment.initVersion]?.tracks ?? []
    let track = rendition.kind == nil ? tracks.first : rendition.track(in: tracks)
    let bytes = track.map {
      FragmentBoxes.empty($0.id, timescale: $0.timescale, at: window.place(of: segment).rescaled(to: $0.timescale))
    }
    return .media(
      [.bytes(bytes ?? FragmentBoxes.singleSegmentType)], type: type, cache: .immutable, entityTag: tag)
  }

  /// Nil if the segment has nothing of the rendition.
  private func layout(of segment: LiveSegment, _ window: LiveWindow) -> SegmentLayout? {
    guard !segment.isOutage, let layout = window.layout(rendition, of: segment) else { return nil }
    if let track = layout.trackID, segment.span(of: track) == nil { return nil }
    return layout
  }

  /// `meant` is the number that the address leads to, which is looked at again after a wait; nil if it is `number` always.
  private func segment(
    _ number: Int, _ request: HTTPRequest, _ window: LiveWindow, meant: (@Sendable (LiveWindow) -> Int?)? = nil
  ) -> HTTPAnswer {
    if let response = segment(number, request, in: window) { return response }
    if window.segment(number) == nil, number < window.nextSequenceNumber {
      return oldSegment(number, window)
    }
    // A request for the segment that begins next waits; later segments do not exist.
    let first = PartPosition(segment: number, part: 0)
    guard number == window.nextSequenceNumber || number == window.segments.last?.sequenceNumber, !window.isEnded else {
      return .now(missing)
    }
    return when(.part(first, rendition, epoch: epoch), window) { _, window in
      if let found = meant.map({ $0(window) }), found != number {
        // An outage is listed in its place, and what is behind that is meant.
        guard let found, window.isInterrupted, found == window.nextSequenceNumber else { return .now(missing) }
        return segment(found, request, window, meant: meant)
      }
      return segment(number, request, in: window)
        ?? .now(window.hasReached(first, in: rendition) || window.isEnded ? missing : late(window))
    }
  }

  /// Nil if nothing of the segment exists.
  private func segment(_ number: Int, _ request: HTTPRequest, in window: LiveWindow) -> HTTPAnswer? {
    guard let segment = window.segment(number) else { return nil }
    let tag = "\"\(epoch)-\(rendition.rawValue)-\(number)\""
    if segment.isOutage { return .now(emptyFragment(in: segment, window, tag), sharing) }
    guard let layout = layout(of: segment, window) else { return nil }
    guard segment.isComplete else { return growing(segment, layout, request, window) }
    let response = HTTPResponse.media(
      segment.pieces(of: layout.trackID), type: type, cache: .immutable, entityTag: tag)
    return .now(response, sharing)
  }

  /// A segment being made: all of it in chunks, or from a byte on, or a closed range once it exists.
  private func growing(
    _ segment: LiveSegment, _ layout: SegmentLayout, _ request: HTTPRequest, _ window: LiveWindow
  ) -> HTTPAnswer {
    let number = segment.sequenceNumber
    let known = segment.byteCount(of: layout.trackID)
    switch request.header("Range").map(GrowingRange.init) ?? .whole {
    case .whole: return .now(growing(number, layout, from: 0))
    case .from(let start):
      guard start <= known else { return .now(unsatisfiable(known)) }
      return .now(growing(number, layout, from: start))
    case .closed(let range):
      if range.upperBound <= known {
        let pieces = segment.pieces(of: layout.trackID).slice(range)
        return .now(partial(range, .pieces(pieces)))
      }
      // Only a range in the next part can be waited for.
      guard range.lowerBound <= known else { return .now(unsatisfiable(known)) }
      return when(.part(window.edge(of: rendition), rendition, epoch: epoch), window) { _, window in
        guard let segment = window.segment(number) else { return .now(missing) }
        let known = segment.byteCount(of: layout.trackID)
        guard range.lowerBound < known else { return .now(unsatisfiable(known)) }
        let range = range.clamped(to: 0..<known)
        return .now(partial(range, .pieces(segment.pieces(of: layout.trackID).slice(range))))
      }
    }
  }

  private func growing(_ number: Int, _ layout: SegmentLayout, from start: Int) -> HTTPResponse {
    let body = HTTPResponse.Body.live(
      GrowingSegmentBody(
        stream: stream, epoch: epoch, rendition: rendition, sequenceNumber: number, track: layout.trackID,
        offset: start))
    guard start > 0 else {
      return HTTPResponse(headers: mediaHeaders, body: body)
    }
    // The last byte is not known yet (RFC 8673 §2.2).
    return partial(start..<GrowingRange.endOfTime, body)
  }

  private var mediaHeaders: [HeaderField] {
    [HeaderField("Content-Type", type.rawValue), HeaderField("Cache-Control", CachePolicy.immutable.value)]
  }

  private func partial(_ range: Range<Int>, _ body: HTTPResponse.Body) -> HTTPResponse {
    HTTPResponse(
      status: .partialContent,
      headers: mediaHeaders + [
        HeaderField("Accept-Ranges", "bytes"),
        HeaderField("Content-Range", "bytes \(range.lowerBound)-\(range.upperBound - 1)/*"),
      ], body: body)
  }

  private func unsatisfiable(_ known: Int) -> HTTPResponse {
    Problem(
      .rangeNotSatisfiable, "The segment is still being made; \(known) bytes of it exist."
    ).response
  }
}

/// The Range field of a request for a growing segment. Suffixes and lists have no meaning for it: the response is the whole
/// segment.
enum GrowingRange: Equatable {
  case whole
  /// From a byte to the end.
  case from(Int)
  case closed(Range<Int>)

  /// Stands for "no end" in ranges (RFC 8673 §2.1: 2⁵³−1 is the last byte).
  static let endOfTime = 1 << 53

  init(_ field: String) {
    switch ByteRange(field, length: Self.endOfTime) {
    case .part(let range) where field.contains("-") && !field.contains("=-"):
      if range.upperBound >= Self.endOfTime {
        self = range.lowerBound == 0 ? .whole : .from(range.lowerBound)
      } else {
        self = .closed(range)
      }
    case .part, .whole, .unsatisfiable: self = .whole
    }
  }
}

internal import Answers
package import Base
internal import Control
package import Delivery
package import HTTP
package import NIOCore
internal import Publishing
package import Recording
package import Streams

/// The handlers of `/api/v1/…` (APITable) and `/time`, for programs and the pages.
package struct APIRoutes {
  let streams: StreamRegistry
  let viewers: ViewerRegistry
  let recordings: RecordingLibrary?
  let captures: CaptureAPI
  let sources: SourcesAPI
  let replay: ReplayRoutes
  let events: EventsAPI
  let authorize: AuthorizeAPI
  /// Checks whether a client may change things.
  let gate: AdminGate
  let clock: SteadyClock
  /// For the publishing instructions on the pages.
  let ports: PublisherPorts
  var publishKeyRequired: Bool { gate.authorizer.isClosed }
  /// For the pages' links; nil if none is configured.
  let publicURL: PublicURL?
  /// How the pages play.
  let player: PlayerChoice
  let oEmbed: OEmbedAPI
  /// The origins whose pages may embed the player.
  let embedFrom: Reloadable<[String]>
  let capacity: @Sendable () -> ServerCapacity
  let control: ControlAPI
  /// For the list of streams: a list of a thousand takes tens of milliseconds, too long for an event loop.
  let lists: SingleFlight<ListKey, ByteBuffer>

  package init(
    streams: StreamRegistry, viewers: ViewerRegistry, recordings: RecordingLibrary?, captures: CaptureAPI,
    sources: SourcesAPI, replay: ReplayRoutes, events: EventsAPI, authorize: AuthorizeAPI, gate: AdminGate,
    clock: SteadyClock, ports: PublisherPorts, publicURL: PublicURL?, player: PlayerChoice, oEmbed: OEmbedAPI,
    embedFrom: Reloadable<[String]>, capacity: @escaping @Sendable () -> ServerCapacity, control: ControlAPI,
    lists: SingleFlight<ListKey, ByteBuffer>
  ) {
    (self.streams, self.viewers, self.recordings, self.captures, self.sources) = (
      streams, viewers, recordings, captures, sources
    )
    (self.replay, self.events, self.authorize, self.gate, self.clock) = (replay, events, authorize, gate, clock)
    (self.ports, self.publicURL, self.player, self.oEmbed, self.embedFrom) = (
      ports, publicURL, player, oEmbed, embedFrom
    )
    (self.capacity, self.control, self.lists) = (capacity, control, lists)
  }

  /// Lists differ by what their readers may see, and by what absolute paths begin with.
  package struct ListKey: Hashable {
    let tokens: [ObjectIdentifier]
    let base: String
  }

  /// The server's wall clock (DASH UTCTiming, http-iso).
  var time: HTTPResponse {
    .text(UTCText(clock.wallTime).internet, cache: .never)
  }

  var recordingAPI: RecordingAPI { RecordingAPI(library: recordings, isWritable: gate.isOpen, clock: clock) }

  var refusals: RefusalsAPI { RefusalsAPI(streams: streams, gate: gate, publishKeyRequired: publishKeyRequired) }

  var sessions: SessionsAPI { SessionsAPI(streams: streams, viewers: viewers, clock: clock) }

  /// Ends a stream and its publication.
  func endStream(_ request: APIRequest) -> HTTPAnswer {
    guard let stream = StreamName(request[0]).flatMap(streams.stream), stream.phase != .ended else {
      return .now(Problem(.noSuchStream, "There is no stream of that name at present.").response)
    }
    stream.endOnRequest(by: request.who)
    return .now(.json(describe(stream, base: request.http.base)))
  }

  func stream(_ request: APIRequest) -> HTTPAnswer {
    guard let name = StreamName(request[0]), let stream = streams.stream(name) else {
      return .now(Problem(.noSuchStream, "There is no stream of that name at present.").response)
    }
    return .now(.json(describe(stream, base: request.http.base)))
  }

  /// The same for players, at an address that caches keep for a second (`/live/{stream}/status.json`). It is the same for all
  /// who may watch, so its addresses have no token.
  package func status(of stream: LiveStream) -> HTTPResponse {
    .json(text: JSONText.encode(describe(stream, base: publicURL?.path ?? "")), cache: .state)
  }

  func list(_ request: APIRequest) -> HTTPAnswer {
    let (viewer, base) = (request.viewer, request.http.base)
    let key = ListKey(tokens: viewer.tokens.map(ObjectIdentifier.init), base: base)
    let text = lists.value(of: key, on: request.eventLoop) { JSONText.encode(list(for: viewer, base: base)) }
    guard let text else {
      return .now(Problem.full(.listsBusy, "Too many lists are being made.", retryAfter: 1).response)
    }
    return .later(text.map { .json(text: $0) })
  }

  private func list(for viewer: Viewer, base: String) -> ServerAnswer {
    let capacity = capacity()
    return ServerAnswer(
      version: Version.number,
      streams: streams.all.filter { viewer.maySee($0.name) }.map { describe($0, base: base) },
      publishKeyRequired: publishKeyRequired,
      writable: gate.isOpen,
      records: recordings != nil, rtmpPort: ports.rtmp, rtmpsPort: ports.rtmps, srtPort: ports.srt,
      webRTCPort: ports.webRTC,
      capacity: [
        "streams": capacity.streams, "connections": capacity.connections, "descriptors": capacity.descriptors,
        "mediaMemoryBytes": capacity.mediaBytes, "mediaMemoryBytesPerStream": capacity.mediaBytesPerStream,
      ],
      publicURL: publicURL?.description, embedFrom: embedFrom.now)
  }

  private func describe(_ stream: LiveStream, base: String) -> StreamAnswer {
    let status = stream.status
    return StreamAnswer(
      status, stream.settings, viewers: viewers.count(of: status.name), recording: recordingAPI.describe(status.name),
      capture: captures.describe(status.name), player: player, now: clock.wallTime, base: base)
  }
}

internal import Base
internal import FMP4
internal import Glibc
package import HTTP
package import NIOCore
internal import NIOHTTP1
internal import Playlists
internal import Publishing
package import Recording
package import Streams

/// `/live/{stream}/…`: playlists at permanent addresses, and media at addresses below an epoch that never change meaning.
package struct LiveRoutes {
  package let streams: StreamRegistry
  package let viewers: ViewerRegistry
  package let thumbnails: Thumbnails
  package let archive: RecordingArchive?
  /// Describes a stream to players.
  package let status: @Sendable (LiveStream) -> HTTPResponse
  let partReloads = PartReloads()
  let looks = AwaitedLooks()

  package init(
    streams: StreamRegistry, viewers: ViewerRegistry, thumbnails: Thumbnails, archive: RecordingArchive?,
    status: @escaping @Sendable (LiveStream) -> HTTPResponse
  ) {
    (self.streams, self.viewers, self.thumbnails, self.archive, self.status) = (
      streams, viewers, thumbnails, archive, status
    )
  }

  /// How long a request waits for a stream that has a publisher but no media yet.
  static let patience = MediaTime(milliseconds: 12_000)

  package func respond(to request: HTTPRequest, on eventLoop: any EventLoop) -> HTTPAnswer {
    let path = request.path
    guard path.count >= 3 else {
      return .now(Problem.notFound("A stream's address is /live/NAME/index.m3u8.").response)
    }
    guard let name = StreamName(path[1]) else {
      return .now(
        Problem(.invalidStreamName, "No stream can have that name: a name is \(StreamName.grammar).").response)
    }
    if path.count == 3, path[2] == "status.json", AwaitedState.isWanted(request) {
      return AwaitedState(streams: streams, looks: looks, status: status).answer(
        to: request, for: name, on: eventLoop)
    }
    guard let stream = streams.stream(name) else {
      if AwaitedState.isWanted(request) { return .now(AwaitedState.nothing) }
      return .now(
        Problem(
          .noSuchStream, "No stream \"\(name)\" is live.",
          help: "Publish it to rtmp://HOST/live with the stream key \(name)."
        ).response)
    }
    // Neither request is counted as a viewer, nor refused by a full server.
    if path.count == 3, path[2] == "status.json" { return .now(status(stream)) }
    if path.count == 3, path[2] == "thumbnail.jpg" { return thumbnails.answer(for: stream, on: eventLoop) }
    if path.count == 3, path[2] == "stream.mp4" {
      guard let audio = request.query("audio") else { return .now(endless(stream, request)) }
      return endless(stream, request, audio: audio, on: eventLoop)
    }
    let admission = StreamAdmission(
      stream: stream, viewers: viewers, delivery: path.last.flatMap { ViewerProtocol(lastPathSegment: $0) })
    return answer(to: request, path, of: stream, on: eventLoop).counted(by: admission)
  }

  private func answer(
    to request: HTTPRequest, _ path: [String], of stream: LiveStream, on eventLoop: any EventLoop
  ) -> HTTPAnswer {
    // Taken before anything is read, so that a change during the request makes the shared response invalid.
    let sharing = Cacheability(stream.stamp)
    switch path.count {
    case 3 where path[2] == "manifest.mpp": return patch(request, of: stream, on: eventLoop)
    case 3 where path[2] == "index.m3u8":
      let start = HLSStart(request.query)
      if let video = request.query("video") {
        return playlist(ofVideo: video, from: start, stream, on: eventLoop).shared(sharing)
      }
      return when(.beginning, stream, .multivariant, from: start, on: eventLoop).shared(sharing)
    case 3: return stable(path[2], of: stream, on: eventLoop)
    case 5:
      guard let rendition = Rendition(pathSegment: path[3]), let asked = MediaName.parse(path[4]) else {
        return .now(missing)
      }
      return MediaRoutes(
        stream: stream, epoch: path[2], rendition: rendition, eventLoop: eventLoop, sharing: sharing, archive: archive,
        partReloads: partReloads
      ).respond(to: request, asking: asked)
    default: return .now(missing)
    }
  }

  private var missing: HTTPResponse { Problem.nothingHere.response }

  // MARK: Permanent addresses

  /// The multivariant playlist of one video of several, with the same audio.
  private func playlist(
    ofVideo text: String, from start: HLSStart, _ stream: LiveStream, on eventLoop: any EventLoop
  ) -> HTTPAnswer {
    guard let number = Int(text), (1...Rendition.mostTracks).contains(number) else { return .now(missing) }
    return stream.wait(for: .beginning, on: eventLoop, atMost: Self.patience).answer { view in
      guard view.epoch.window.hasBegun else {
        return .now(view.phase == .ended ? self.ended(stream) : Problem.notYet(stream.name).response)
      }
      guard view.epoch.window.currentInit?.tracks.track(.video, number) != nil else {
        return .now(Problem.notFound("The stream \"\(stream.name)\" has no video \(number).").response)
      }
      // Interleaved, a video by itself has no parts.
      let isEarly = start.isEarly(view.epoch.window) && view.epoch.layout == .separate
      return stream.rendered(
        isEarly ? .beginning(start, video: number) : .videoMultivariant(number), of: view, on: eventLoop)
    }
  }

  private func stable(_ name: String, of stream: LiveStream, on eventLoop: any EventLoop) -> HTTPAnswer {
    switch name {
    case "dvr.m3u8": return when(.release, stream, .programme, on: eventLoop)
    case "manifest.mpd": return when(.release, stream, .manifest, on: eventLoop)
    default: return .now(missing)
    }
  }

  /// `stream.mp4?audio=`: once the tracks are known.
  private func endless(
    _ stream: LiveStream, _ request: HTTPRequest, audio asked: String, on eventLoop: any EventLoop
  ) -> HTTPAnswer {
    stream.wait(for: .beginning, on: eventLoop, atMost: Self.patience).answer { view in
      guard let tracks = view.epoch.window.currentInit?.tracks else {
        return .now(view.phase == .ended ? self.ended(stream) : Problem.notYet(stream.name).response)
      }
      guard let audio = tracks.audio(asked) else {
        return .now(
          Problem.notFound(
            "The stream \"\(stream.name)\" has no such audio track.", help: "Give its number or its language."
          ).response)
      }
      let shown = tracks.defaults(withAudio: audio.id)
      return .now(self.endless(stream, request, tracks: shown == tracks.defaults ? nil : shown.map(\.id)))
    }
  }

  /// `stream.mp4`: each response counts as a viewer while it lasts. A HEAD request is no viewer.
  private func endless(_ stream: LiveStream, _ request: HTTPRequest, tracks: [TrackID]? = nil) -> HTTPResponse {
    guard stream.phase != .ended else { return ended(stream) }
    if stream.lacksKeyFrames {
      return Problem(
        .notYet, "The stream \"\(stream.name)\" has no key frames, only gradual refresh: nobody can join it.",
        help: "Turn intra refresh off in the encoder.", retryAfter: 10
      ).response
    }
    var seat: ViewerSeat?
    if request.method != .head {
      let client = ClientID(request.client, request.fields)
      seat = viewers.seat(stream: stream.name, client: client, lifetime: stream.viewerLifetime)
      if seat == nil { return StreamAdmission.full }
    }
    return HTTPResponse(
      headers: [
        HeaderField("Content-Type", ContentType.mp4.rawValue), HeaderField("Cache-Control", CachePolicy.never.value),
      ], body: .live(ProgressiveBody(stream: stream, seat: seat, tracks: tracks)))
  }

  private func ended(_ stream: LiveStream) -> HTTPResponse {
    Problem(.streamEnded, "The stream \"\(stream.name)\" has ended.").response
  }

  /// Responds with the playlist once its target duration is known and it has segments. The multivariant playlist has other
  /// addresses for who starts with parts.
  private func when(
    _ condition: WaitQueue.Condition, _ stream: LiveStream, _ kind: PlaylistCache.Kind,
    from start: HLSStart = .wholeSegment, on eventLoop: any EventLoop
  ) -> HTTPAnswer {
    stream.wait(for: condition, on: eventLoop, atMost: Self.patience).answer { view in
      let window = view.epoch.window
      guard condition == .beginning ? window.hasBegun : window.isReleased, !window.segments.isEmpty else {
        return .now(view.phase == .ended ? self.ended(stream) : Problem.notYet(stream.name).response)
      }
      return stream.rendered(start.isEarly(window) ? .beginning(start, video: nil) : kind, of: view, on: eventLoop)
    }
  }
}

/// Counts the viewers of a stream.
private final class StreamAdmission: Admission {
  private let stream: LiveStream
  private let viewers: ViewerRegistry
  private let delivery: ViewerProtocol?

  init(stream: LiveStream, viewers: ViewerRegistry, delivery: ViewerProtocol?) {
    self.stream = stream
    self.viewers = viewers
    self.delivery = delivery
  }

  static var full: HTTPResponse {
    Problem.full(.tooManyViewers, "The server has as many viewers as it may have (--max-viewers).").response
  }

  func refusal(of client: ClientID) -> HTTPResponse? {
    let isAdmitted = viewers.touch(
      stream: stream.name, client: client, lifetime: stream.viewerLifetime, delivery: delivery)
    return isAdmitted ? nil : Self.full
  }
}

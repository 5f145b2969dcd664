internal import Base
internal import Delivery
internal import FMP4
internal import HTTP
internal import NIOCore
internal import Publishing
internal import Recording
internal import RecordingFiles
internal import Storage

/// `/api/v1/recordings/{stream}/{file}/clip?from&to`: a range of a recording as an ordinary MP4. `from` and `to` are seconds of
/// the recording or UTC times; by default the start and the end.
extension ReplayRoutes {
  func clip(_ request: APIRequest) -> HTTPAnswer {
    guard let (stream, name) = Self.recording(request) else { return .now(missing) }
    let from: ReplaySource.Moment?
    let to: ReplaySource.Moment?
    do throws(ReplaySource.Moment.Malformed) {
      from = try Self.moment(request.http, "from")
      to = try Self.moment(request.http, "to")
    } catch {
      return .now(
        Problem(.malformedQuery, error.detail, help: "Write from=12.5&to=72.5, or from=2026-11-21T07:24:10Z.").response)
    }
    guard let to, let source = archive.growing(stream, name.stem) else { return clip(stream, name, from, to, request) }
    return .later(
      written(source, until: to, times: Self.looks, on: request.eventLoop).flatMap {
        clip(stream, name, from, to, request).response(on: request.eventLoop)
      })
  }

  /// Done once a recording has all media up to a moment, if that is about to be written: a clip of what is live ends with media
  /// that its viewer has just seen.
  private func written(
    _ source: ReplaySource, until moment: ReplaySource.Moment, times: Int, on eventLoop: any EventLoop
  ) -> EventLoopFuture<Void> {
    let isDue = archive.threads.runIfActive(eventLoop: eventLoop) {
      let missing = source.withIndex { $0.missing(until: moment) }
      return !source.isOver && missing > .zero && missing <= Self.unwritten
    }
    return isDue.flatMap { isDue in
      guard isDue, times > 0 else { return eventLoop.makeSucceededVoidFuture() }
      return eventLoop.scheduleTask(in: Self.look) {}.futureResult.flatMap {
        written(source, until: moment, times: times - 1, on: eventLoop)
      }
    }
  }

  private func clip(
    _ stream: StreamName, _ name: RecordingName, _ from: ReplaySource.Moment?, _ to: ReplaySource.Moment?,
    _ request: APIRequest
  ) -> HTTPAnswer {
    open(stream, name.stem, for: request.http.client, on: request.eventLoop, patience: Self.patience) { source in
      do {
        let make = {
          try source.clip(
            from: from, to: to, audio: request.http.query("audio"), atMost: Self.longest,
            metadata: .recording(title: stream.description, name: name))
        }
        let fileName = "\(name.title(of: stream.description))-clip.mp4"
        let length = source.length(from: from, to: to)
        // Checked before anything is read and before any wait.
        guard length <= Self.longest else { return Self.problem(.tooLong).response }
        guard length > LongClips.shortest else {
          let clip = try make()
          return Self.response(clip, .bytes(clip.movieHeader), fileName: fileName, isOver: source.isOver)
        }
        guard let (clip, head) = try longClips.make(for: request.http.client, make) else {
          return Problem.full(.clipsBusy, "Other long clips are being made or sent.").response
        }
        return Self.response(clip, .file(head), fileName: fileName, isOver: source.isOver)
      } catch let failure as ReplaySource.ClipFailure {
        return Self.problem(failure).response
      }
    }
  }

  private static func moment(
    _ request: HTTPRequest, _ name: String
  ) throws(ReplaySource.Moment.Malformed) -> ReplaySource.Moment? {
    guard let text = request.query(name) else { return nil }
    return try ReplaySource.Moment(text, name: name)
  }

  private static func response(
    _ clip: RecordingClip, _ head: BodyPiece, fileName: String, isOver: Bool
  ) -> HTTPResponse {
    var response = HTTPResponse.media(
      [head, .file(clip.media)], type: .mp4, cache: isOver ? .recording : .never,
      entityTag: EntityTag.of(clip.movieHeader))
    response.headers += [
      HeaderField("Content-Disposition", "attachment; filename=\"\(fileName)\""),
      HeaderField("Weir-Clip-Seconds", Decimals.fixed(seconds: clip.seconds, digits: 3)),
    ]
    return response
  }

  /// Media that is missing at the end of a running recording is waited for, if it is no more than this.
  private static let unwritten = MediaTime(milliseconds: 3000)
  private static let look = TimeAmount.milliseconds(100)
  private static let looks = 30

  /// A long clip reads the headers of hours of fragments.
  private static let patience = TimeAmount.seconds(20)

  /// The headers of all fragments are read during the request, and the clip's moov is made in memory: 20 MB for this length.
  private static let longest = MediaTime(milliseconds: 4 * 3_600_000)

  private static func problem(_ failure: ReplaySource.ClipFailure) -> Problem {
    switch failure {
    case .tooLong:
      Problem(
        .clipTooLong, "A clip lasts at most \(Int(longest.seconds) / 3600) h.",
        help: "Ask for less, download the recording, or cut its file with weir record clip.")
    case .noClock:
      Problem(
        .clipWithoutClock, "Neither the recording nor its name contains a time of day.",
        help: "Give from and to in seconds of the recording.")
    case .noAudio:
      Problem(.noSuchTrack, "The recording has no such audio track.", help: "Give its number or its language.")
    case .empty: Problem(.clipEmpty, "The clip would end before it begins.", help: "Choose to after from.")
    case .outside(let length):
      Problem(
        .clipOutside,
        "The recording has no media in that range: it is \(Decimals.fixed(seconds: length, digits: 0)) s long.")
    }
  }
}

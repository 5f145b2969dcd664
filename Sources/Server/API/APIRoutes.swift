internal import Basics
internal import FMP4
internal import HTTP
internal import Ingest
internal import NIOCore

/// What answers `/api/v1/…` (APITable), and `/time`: what machines and the pages ask.
struct APIRoutes {
  let streams: StreamRegistry
  let viewers: ViewerRegistry
  let recordings: RecordingLibrary?
  let captures: CaptureAPI
  let sources: SourcesAPI
  let replay: ReplayRoutes
  /// Who may change things.
  let gate: AdminGate
  let clock: SteadyClock
  /// For the pages, which tell people where to publish.
  let rtmpPort: Int?
  let publishKeyRequired: Bool
  /// For the pages' links; nil where nobody said.
  let publicURL: PublicURL?
  let capacity: ServerCapacity

  /// The server's wall clock (DASH UTCTiming, http-iso).
  var time: HTTPResponse {
    .text(UTCText(nanosecondsSince1970: clock.wallNanoseconds).internet, cache: .never)
  }

  var recordingAPI: RecordingAPI { RecordingAPI(library: recordings, isWritable: gate.token != nil, clock: clock) }

  var refusals: RefusalsAPI { RefusalsAPI(streams: streams, gate: gate, publishKeyRequired: publishKeyRequired) }

  func stream(_ request: APIRequest) -> HTTPAnswer {
    guard let name = StreamName(request[0]), let stream = streams.stream(name) else {
      return .now(Problem.notFound("There is no stream of that name now.").response)
    }
    return .now(.json(describe(stream)))
  }

  var list: JSON {
    var members: [(name: String, value: JSON)] = [
      ("version", .string(Version.number)), ("streams", .array(streams.all.map(describe))),
      ("publishKeyRequired", .bool(publishKeyRequired)), ("writable", .bool(gate.token != nil)),
      ("records", .bool(recordings != nil)),
    ]
    members.append(("rtmpPort", rtmpPort.map { .integer($0) } ?? .null))
    members.append(
      (
        "capacity",
        [
          "streams": .integer(capacity.streams), "connections": .integer(capacity.connections),
          "descriptors": .integer(capacity.descriptors), "mediaMemoryBytes": .integer(capacity.mediaBytes),
          "mediaMemoryBytesPerStream": .integer(capacity.mediaBytesPerStream),
        ]
      ))
    members.append(("publicURL", publicURL.map { .string($0.description) } ?? .null))
    return .object(members)
  }

  private func describe(_ stream: LiveStream) -> JSON {
    let status = stream.status
    let base = "/live/\(status.name)"
    var members: [(name: String, value: JSON)] = [
      ("name", .string(status.name.description)), ("state", .string(status.phase.rawValue)),
      ("protocol", .string(status.protocolName)),
      ("startedAt", .string(UTCText(nanosecondsSince1970: status.startedAt).internet)),
      ("ageSeconds", seconds(MediaTime(nanoseconds: (status.endedAt ?? clock.wallNanoseconds) &- status.startedAt))),
      ("viewers", .integer(viewers.count(of: status.name))), ("bitrate", .integer(status.bitrate)),
      ("gopSeconds", status.longestGroup.map(seconds) ?? .null),
      ("targetDuration", status.targetDuration.map { .integer($0) } ?? .null),
      ("memoryBytes", .integer(status.residentBytes)), ("playlistRenders", .integer(status.playlistRenders)),
      ("tracks", .array(status.tracks.map(describe))), ("warnings", .array(status.warnings.map { .string($0) })),
    ]
    members.append(("ladder", status.transcoding.map { describe($0, status.rungs) } ?? .null))
    members.append(("sound", status.soundTranscoding.map { describe($0, sound: status.sound) } ?? .null))
    members.append(("recording", recordings?.describe(status.name) ?? .null))
    members.append(("capture", captures.describe(status.name)))
    members.append(
      (
        "anchor",
        status.anchor.map {
          [
            "mediaSeconds": seconds($0.mediaTime),
            "wall": .string(UTCText(nanosecondsSince1970: $0.wallNanoseconds).internet),
          ]
        } ?? .null
      ))
    members.append(
      (
        "urls",
        [
          "watch": .string("/watch/\(status.name)"), "hls": .string("\(base)/index.m3u8"),
          "dash": .string("\(base)/manifest.mpd"), "mp4": .string("\(base)/stream.mp4"),
        ]
      ))
    return .object(members)
  }

  private func describe(_ status: TranscodeStatus, _ rungs: [RungStatus]) -> JSON {
    [
      "worker": .string(status.worker.rawValue), "processID": status.processID.map { .integer(Int($0)) } ?? .null,
      "restarts": .integer(status.restarts), "droppedPictures": .integer(status.droppedPictures),
      "expected": .array(status.rungs.map { .string($0) }),
      "rungs": .array(
        rungs.map { rung in
          let size = rung.track.codec.displaySize
          return [
            "name": .string(rung.name), "width": .integer(size?.width ?? 0), "height": .integer(size?.height ?? 0),
            "codecString": .string(rung.track.codec.codecString), "bitrate": .integer(rung.bitrate),
          ]
        }),
    ]
  }

  private func describe(_ status: TranscodeStatus, sound: RungStatus?) -> JSON {
    [
      "worker": .string(status.worker.rawValue), "processID": status.processID.map { .integer(Int($0)) } ?? .null,
      "restarts": .integer(status.restarts), "droppedFrames": .integer(status.droppedPictures),
      "expected": .array(status.rungs.map { .string($0) }),
      "codecString": sound.map { .string($0.track.codec.codecString) } ?? .null,
      "bitrate": sound.map { .integer($0.bitrate) } ?? .null,
    ]
  }

  private func describe(_ track: TrackDescription) -> JSON {
    var members: [(name: String, value: JSON)] = [
      ("id", .integer(Int(track.id.rawValue))), ("kind", .string(track.kind.rawValue)),
      ("codec", .string(track.codec.name)), ("codecString", .string(track.codec.codecString)),
    ]
    if let size = track.codec.displaySize {
      members += [("width", .integer(size.width)), ("height", .integer(size.height))]
      members.append(("frameRate", track.frameRate.map { .number(Double($0) / 1000) } ?? .null))
    }
    if let audio = track.codec.audio {
      members += [("sampleRate", .integer(Int(audio.sampleRate))), ("channels", .integer(audio.channels))]
    }
    return .object(members)
  }

  /// Seconds with a thousandth's resolution.
  private func seconds(_ time: MediaTime) -> JSON {
    .number(Double(time.rescaled(to: 1000)) / 1000)
  }
}

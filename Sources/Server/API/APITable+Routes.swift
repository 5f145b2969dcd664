internal import Answers
internal import Base
internal import Delivery
internal import HTTP
internal import RecordingFiles

/// The routes, by what they are about.
extension APITable {
  static let general = [
    APIRoute(.get, "/api/v1", "this list", gives: .json(IndexAnswer.self)) { _, _ in .now(.json(APITable.index)) },
    APIRoute(.get, "/api/v1/admin", .read, "200: the token is the right one", gives: .json(AdminAnswer.self)) { _, _ in
      .now(.json(AdminAnswer(admin: true)))
    },
    APIRoute(
      .get, "/api/v1/authorize", "whether a viewer may have what an address names, for caches", gives: .nothing,
      query: [APIParameter("path", .text, "The address, where no field X-Original-URI names it.")],
      problems: [.malformedQuery, .viewerNotAllowed, .tooManyWrongTokens]
    ) { $0.authorize.answer($1) },
    APIRoute(
      .get, "/api/v1/devices", .read, "cameras and microphones of this machine", gives: .json(DevicesAnswer.self)
    ) { $0.sources.devices($1) },
    APIRoute(.get, "/api/v1/openapi.json", "the description of the API (OpenAPI 3.1)", gives: .document) { _, _ in
      .now(OpenAPIDocument.response)
    },
    APIRoute(
      .get, "/api/v1/oembed", "how other sites show the player for an address of this server (oEmbed 1.0)",
      gives: .json(OEmbedAnswer.self),
      query: [
        APIParameter("url", .text, "The address of a stream's page."),
        APIParameter("maxwidth", .wholeNumber(1...OEmbedAPI.largestSide), "The widest that the player may be."),
        APIParameter("maxheight", .wholeNumber(1...OEmbedAPI.largestSide), "The highest that it may be."),
        APIParameter("format", .words(["json"]), "The form of the answer."),
      ], problems: [.notOurs, .viewerNotAllowed, .malformedQuery, .oEmbedFormat]
    ) { $0.oEmbed.answer($1) },
    APIRoute(
      .get, "/api/v1/refusals", "publications that were refused lately, and why", gives: .json(RefusalsAnswer.self),
      query: [APIParameter("stream", .text, "Only those of this name. Without the admin token it may be required.")],
      problems: [.readOnly, .otherOrigin, .tokenMissing, .tokenWrong, .tooManyWrongTokens]
    ) { $0.refusals.list($1) },
    APIRoute(
      .get, "/api/v1/sessions", .read, "a page of the publishers and viewers that are connected",
      gives: .json(SessionsAnswer.self),
      query: [APIParameter("stream", .text, "Only those of this stream.")] + ListPage.parameters,
      problems: [.malformedQuery]
    ) { $0.sessions.list($1) },
    APIRoute(
      .get, "/api/v1/sessions/{session}", .read, "one of them", gives: .json(SessionAnswer.self),
      problems: [.noSuchSession]
    ) { $0.sessions.one($1) },
    APIRoute(
      .delete, "/api/v1/sessions/{session}", .operate,
      "disconnects it: a publisher may return, and its stream waits for it",
      gives: .json(SessionAnswer.self), problems: [.noSuchSession]
    ) { $0.sessions.end($1) },
    APIRoute(.get, "/api/v1/version", "the release", gives: .json(VersionAnswer.self)) { _, _ in
      .now(.json(VersionAnswer(version: Version.number)))
    },
  ]

  static let control = [
    APIRoute(
      .get, "/api/v1/events", .read, "what happened: a page, or as it comes (Accept: text/event-stream)",
      gives: .jsonOrEvents(EventsAnswer.self),
      query: [
        APIParameter("stream", .text, "Only those of this stream."),
        APIParameter("kind", .text, "Only those of this kind; `recording.*` stands for several."),
        APIParameter("after", .wholeNumber(0...Int.max), "Only those behind this one."),
        APIParameter("limit", .wholeNumber(1...EventsAPI.longestPage), "The length of the page; by default 100."),
        APIParameter("Last-Event-ID", .text, in: .header, "Where text/event-stream goes on: behind this event."),
      ], problems: [.malformedQuery, .tooManyEventStreams]
    ) { $0.events.list($1) },
    APIRoute(
      .get, "/api/v1/events/deliveries", .read, "what hooks did lately, and what they wait for",
      gives: .json(DeliveriesAnswer.self)
    ) { api, _ in api.events.listDeliveries },
    APIRoute(
      .get, "/api/v1/keys", .admin, "a page of the keys, without their texts", gives: .json(KeysAnswer.self),
      query: ListPage.parameters, problems: [.malformedQuery]
    ) { $0.control.keys($1) },
    APIRoute(
      .post, "/api/v1/keys", .admin, "makes a key; its text is told once", gives: .json(KeyAnswer.self),
      body: .json(KeyRequest.self), problems: [.malformedBody, .keyExists, .needsState, .notReadable]
    ) { $0.control.addKey($1) },
    APIRoute(
      .delete, "/api/v1/keys/{key}", .admin, "revokes a key and ends what it publishes",
      gives: .json(KeyAnswer.self), problems: [.noSuchKey, .keyIsConfigured, .needsState, .notReadable]
    ) { $0.control.removeKey($1) },
    APIRoute(
      .get, "/api/v1/settings", .read, "what holds, and where each value comes from", gives: .json(SettingsAnswer.self),
      problems: [.settingsFixed]
    ) { $0.control.settings($1) },
    APIRoute(
      .post, "/api/v1/settings/reload", .admin, "reads the configuration file again", gives: .json(ReloadAnswer.self),
      problems: [.settingsFixed, .settingsRefused, .notReadable]
    ) { $0.control.reload($1) },
    APIRoute(
      .delete, "/api/v1/streams/{stream}/settings", .admin, "takes back what was set of a stream",
      gives: .json(ReloadAnswer.self), problems: ofSettings
    ) { $0.control.setSettings($1, clearing: true) },
    APIRoute(
      .get, "/api/v1/streams/{stream}/settings", .read, "what holds for a stream", gives: .json(SettingsAnswer.self),
      problems: [.invalidStreamName, .settingsFixed]
    ) { $0.control.settingsOfStream($1) },
    APIRoute(
      .put, "/api/v1/streams/{stream}/settings", .admin, "sets what holds for a stream",
      gives: .json(ReloadAnswer.self),
      body: .entry(
        "The stream's entry in the configuration file, as JSON or YAML.", example: #"{"partDuration": "100ms"}"#),
      problems: ofSettings
    ) { $0.control.setSettings($1, clearing: false) },
  ]

  private static let ofSettings: [ProblemKind] = [
    .invalidStreamName, .settingsFixed, .settingsRefused, .needsState, .notReadable,
  ]

  static let recordings = [
    APIRoute(
      .get, "/api/v1/storage", "room on the disk of recordings", gives: .json(StorageAnswer.self),
      problems: [.noStorage, .diskNotResponding]
    ) { $0.recordingAPI.storage(on: $1.eventLoop) },
    APIRoute(
      .get, "/api/v1/recordings", "a page of recordings", gives: .json(RecordingsAnswer.self),
      query: [
        APIParameter("stream", .text, "Only this stream's."),
        APIParameter("from", .time, "Only those that began then or later."),
        APIParameter("to", .time, "Only those that began before."),
        APIParameter("state", .words(["running", "completed", "failed", "deleted"]), "Only those of this state."),
        APIParameter(
          "sort", .words(CatalogueQuery.Order.allCases.map(\.rawValue)), "What comes first; by default newest."),
        APIParameter("limit", .wholeNumber(1...CatalogueQuery.maximumLimit), "The length of the page; by default 100."),
        APIParameter("cursor", .text, "`next` of the page before."),
      ], problems: [.malformedQuery, .diskNotResponding]
    ) { $0.recordingAPI.list($1) },
    APIRoute(
      .get, "/api/v1/recordings/{stream}/{file}", "one recording", gives: .json(EntryAnswer.self),
      problems: ofRecordings
    ) { $0.recordingAPI.one($1) },
    APIRoute(
      .put, "/api/v1/recordings/{stream}/{file}", .operate, "names it, and notes what there is to say about it",
      gives: .json(EntryAnswer.self), body: .json(AnnotationRequest.self),
      problems: ofRecordings + [.malformedBody, .unusableValue, .diskFailed]
    ) { $0.recordingAPI.annotate($1) },
    APIRoute(
      .delete, "/api/v1/recordings/{stream}/{file}", .operate, "moves it aside, to be deleted later",
      gives: .json(EntryAnswer.self), problems: ofRecordings + [.recordingRuns, .recordingProtected, .diskFailed]
    ) { $0.recordingAPI.change($1, .delete) },
    APIRoute(
      .get, "/api/v1/recordings/{stream}/{file}/clip", "a stretch of it as an MP4", gives: .bytes(.mp4),
      query: [
        APIParameter("from", .text, "Seconds of the recording, or a time of day; by default its start."),
        APIParameter("to", .text, "The same of the end; by default that of the recording."),
      ],
      problems: ofRecordings + [
        .malformedQuery, .clipTooLong, .clipWithoutClock, .clipEmpty, .clipOutside, .clipsBusy, .tooManyFiles,
        .notReadable,
      ]
    ) { $0.replay.clip($1) },
    APIRoute(
      .get, "/api/v1/recordings/{stream}/{file}/keyframes", "where decoding can begin, and the time of day",
      gives: .json(RecordedKeyFrames.self), problems: ofRecordings + [.tooManyFiles, .notReadable]
    ) { $0.replay.keyFrames($1) },
    APIRoute(
      .post, "/api/v1/recordings/{stream}/{file}/protect", .operate, "nothing deletes it",
      gives: .json(EntryAnswer.self),
      problems: ofRecordings + [.recordingRuns, .recordingUnfinished, .diskFailed]
    ) { $0.recordingAPI.change($1, .protect) },
    APIRoute(
      .post, "/api/v1/recordings/{stream}/{file}/restore", .operate, "takes a deletion back",
      gives: .json(EntryAnswer.self), problems: ofRecordings + [.recordingNotDeleted, .diskFailed]
    ) { $0.recordingAPI.change($1, .restore) },
    APIRoute(
      .post, "/api/v1/recordings/{stream}/{file}/unprotect", .operate, "it may be deleted again",
      gives: .json(EntryAnswer.self), problems: ofRecordings + [.recordingRuns, .recordingUnfinished, .diskFailed]
    ) { $0.recordingAPI.change($1, .unprotect) },
  ]

  static let sources = [
    APIRoute(.get, "/api/v1/sources", .read, "this server's own sources", gives: .json(SourcesAnswer.self)) {
      $0.sources.list($1)
    },
    APIRoute(
      .get, "/api/v1/sources/{source}", .read, "one of them", gives: .json(SourceAnswer.self),
      problems: [.noSuchSource]
    ) { $0.sources.one($1) },
    APIRoute(
      .get, "/api/v1/sources/{source}/preview.jpg", .read, "its newest frame", gives: .bytes(.jpeg),
      problems: [.noSuchSource, .noKeyFrameYet, .thumbnailsBusy, .noThumbnail]
    ) { $0.sources.preview($1) },
    APIRoute(
      .get, "/api/v1/sources/{source}/preview.mp4", .read, "it as an endless MP4", gives: .bytes(.mp4),
      problems: [.noSuchSource, .noKeyFrameYet]
    ) { $0.sources.film($1) },
    APIRoute(
      .post, "/api/v1/sources/{source}/recording/start", .operate, "records it, on the air or off",
      gives: .state(SourceAnswer.self), body: .json(RecordingRequest.self),
      problems: [
        .noSuchSource, .recordsNothing, .alreadyRecording, .neverRecorded, .sourceStopping, .sourceEnded,
        .recordingsClosing, .malformedBody, .unusableValue, .noSuchTrack,
      ]
    ) { $0.sources.record($1) },
    APIRoute(
      .post, "/api/v1/sources/{source}/recording/stop|cancel", .operate, "ends its recording",
      gives: .state(SourceAnswer.self),
      problems: [.noSuchSource, .recordsNothing, .notRecording, .sourceStopping, .sourceEnded, .recordingsClosing]
    ) { $0.sources.endRecording($1) },
    APIRoute(
      .post, "/api/v1/sources/{source}/start|preview|stop", .operate, "puts it on the air, takes it off, ends it",
      gives: .state(SourceAnswer.self), problems: [.noSuchSource, .sourceNotAdmitted]
    ) { $0.sources.act($1) },
  ]

  static let streams = [
    APIRoute(
      .get, "/api/v1/streams", "all streams, and what this server is", gives: .json(ServerAnswer.self),
      problems: [.listsBusy]
    ) {
      $0.list($1)
    },
    APIRoute(
      .get, "/api/v1/streams/{stream}", "one stream", gives: .json(StreamAnswer.self), problems: [.noSuchStream]
    ) { $0.stream($1) },
    APIRoute(
      .delete, "/api/v1/streams/{stream}", .operate, "disconnects its publisher, and ends it",
      gives: .json(StreamAnswer.self),
      problems: [.noSuchStream]
    ) { $0.endStream($1) },
    APIRoute(
      .post, "/api/v1/streams/{stream}/capture/camera|microphone|controls|keyframe", .operate,
      "changes devices and their controls while they are live", gives: .json(CaptureAnswer.self),
      body: .text(
        "What is changed, as in a source: a device with its options, or `NAME=VALUE&NAME=VALUE`.",
        example: "v4l2:/dev/video0?rotate=90"),
      problems: [
        .noCapture, .malformedBody, .noDevice, .badControl, .optionFixed, .cameraEncodes, .noKeyFrames, .sourceEnded,
      ]
    ) { $0.captures.change($1) },
    APIRoute(
      .post, "/api/v1/streams/{stream}/recording/start", .record, "records the stream",
      gives: .state(RecordingStateAnswer.self), body: .json(RecordingRequest.self),
      problems: ofRecording + [.alreadyRecording, .neverRecorded, .malformedBody, .unusableValue, .noSuchTrack]
    ) { $0.recordingAPI.start($1) },
    APIRoute(
      .post, "/api/v1/streams/{stream}/recording/stop|cancel", .record, "ends the stream's recording",
      gives: .state(RecordingStateAnswer.self), problems: ofRecording
    ) { $0.recordingAPI.end($1) },
  ]

  private static let ofRecording: [ProblemKind] = [
    .invalidStreamName, .recordsNothing, .notLive, .notRecording, .recordingsClosing,
  ]

  private static let ofRecordings: [ProblemKind] = [.noSuchRecording, .diskNotResponding]
}

/// `/api/v1/admin`.
struct AdminAnswer: APIObject {
  let admin: Bool
}

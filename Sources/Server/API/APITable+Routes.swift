internal import Basics
internal import HTTP

/// The routes, by what they are about.
extension APITable {
  static let general = [
    APIRoute(.get, "/api/v1", "this list", gives: .json(IndexAnswer.self)) { _, _ in .now(.json(APITable.index)) },
    APIRoute(.get, "/api/v1/admin", .admin, "200: the token is the right one", gives: .json(AdminAnswer.self)) { _, _ in
      .now(.json(AdminAnswer(admin: true)))
    },
    APIRoute(
      .get, "/api/v1/devices", .admin, "cameras and microphones of this machine", gives: .json(DevicesAnswer.self)
    ) { $0.sources.devices($1) },
    APIRoute(.get, "/api/v1/openapi.json", "the description of the API (OpenAPI 3.1)", gives: .document) { _, _ in
      .now(OpenAPIDocument.response)
    },
    APIRoute(
      .get, "/api/v1/refusals", "publications that were refused lately, and why", gives: .json(RefusalsAnswer.self),
      query: [APIParameter("stream", .text, "Only those of this name. Without the admin token it may be required.")],
      problems: [.readOnly, .otherOrigin, .tokenMissing, .tokenWrong, .tooManyWrongTokens]
    ) { $0.refusals.list($1) },
    APIRoute(
      .get, "/api/v1/sessions", .admin, "publishers and viewers that are connected", gives: .json(SessionsAnswer.self),
      query: [APIParameter("stream", .text, "Only those of this stream.")]
    ) { $0.sessions.list($1) },
    APIRoute(
      .get, "/api/v1/sessions/{session}", .admin, "one of them", gives: .json(SessionAnswer.self),
      problems: [.noSuchSession]
    ) { $0.sessions.one($1) },
    APIRoute(
      .delete, "/api/v1/sessions/{session}", .admin,
      "disconnects it: a publisher may return, and its stream waits for it",
      gives: .json(SessionAnswer.self), problems: [.noSuchSession]
    ) { $0.sessions.end($1) },
    APIRoute(.get, "/api/v1/version", "the release", gives: .json(VersionAnswer.self)) { _, _ in
      .now(.json(VersionAnswer(version: Version.number)))
    },
  ]

  static let recordings = [
    APIRoute(
      .get, "/api/v1/storage", "room on the disk of recordings", gives: .json(StorageAnswer.self),
      problems: [.noStorage, .diskNotResponding]
    ) { $0.recordingAPI.storage(on: $1.eventLoop) },
    APIRoute(
      .get, "/api/v1/recordings", "a page of recordings, newest first", gives: .json(RecordingsAnswer.self),
      query: [
        APIParameter("stream", .text, "Only this stream's."),
        APIParameter("from", .time, "Only those that began then or later."),
        APIParameter("to", .time, "Only those that began before."),
        APIParameter("state", .words(["running", "completed", "failed", "deleted"]), "Only those of this state."),
        APIParameter("limit", .wholeNumber(1...CatalogueQuery.maximumLimit), "The length of the page; by default 100."),
        APIParameter("cursor", .text, "`next` of the page before."),
      ], problems: [.malformedQuery, .diskNotResponding]
    ) { $0.recordingAPI.list($1) },
    APIRoute(
      .get, "/api/v1/recordings/{stream}/{file}", "one recording", gives: .json(EntryAnswer.self),
      problems: ofRecordings
    ) { $0.recordingAPI.one($1) },
    APIRoute(
      .delete, "/api/v1/recordings/{stream}/{file}", .admin, "moves it aside, to be deleted later",
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
      .post, "/api/v1/recordings/{stream}/{file}/protect", .admin, "nothing deletes it", gives: .json(EntryAnswer.self),
      problems: ofRecordings + [.recordingRuns, .recordingUnfinished, .diskFailed]
    ) { $0.recordingAPI.change($1, .protect) },
    APIRoute(
      .post, "/api/v1/recordings/{stream}/{file}/restore", .admin, "takes a deletion back",
      gives: .json(EntryAnswer.self), problems: ofRecordings + [.recordingNotDeleted, .diskFailed]
    ) { $0.recordingAPI.change($1, .restore) },
    APIRoute(
      .post, "/api/v1/recordings/{stream}/{file}/unprotect", .admin, "it may be deleted again",
      gives: .json(EntryAnswer.self), problems: ofRecordings + [.recordingRuns, .recordingUnfinished, .diskFailed]
    ) { $0.recordingAPI.change($1, .unprotect) },
  ]

  static let sources = [
    APIRoute(.get, "/api/v1/sources", .admin, "this server's own sources", gives: .json(SourcesAnswer.self)) {
      $0.sources.list($1)
    },
    APIRoute(
      .get, "/api/v1/sources/{source}", .admin, "one of them", gives: .json(SourceAnswer.self),
      problems: [.noSuchSource]
    ) { $0.sources.one($1) },
    APIRoute(
      .get, "/api/v1/sources/{source}/preview.jpg", .admin, "its newest frame", gives: .bytes(.jpeg),
      problems: [.noSuchSource, .noKeyFrameYet, .thumbnailsBusy, .noThumbnail]
    ) { $0.sources.preview($1) },
    APIRoute(
      .post, "/api/v1/sources/{source}/recording/start|stop|cancel", .admin, "its recording, on the air or off",
      gives: .state(SourceAnswer.self),
      problems: [
        .noSuchSource, .recordsNothing, .alreadyRecording, .notRecording, .neverRecorded, .sourceStopping, .sourceEnded,
        .recordingsClosing,
      ]
    ) { $0.sources.record($1) },
    APIRoute(
      .post, "/api/v1/sources/{source}/start|preview|stop", .admin, "puts it on the air, takes it off, ends it",
      gives: .state(SourceAnswer.self), problems: [.noSuchSource, .sourceNotAdmitted]
    ) { $0.sources.act($1) },
  ]

  static let streams = [
    APIRoute(.get, "/api/v1/streams", "all streams, and what this server is", gives: .json(ServerAnswer.self)) {
      $0.list(on: $1.eventLoop)
    },
    APIRoute(
      .get, "/api/v1/streams/{stream}", "one stream", gives: .json(StreamAnswer.self), problems: [.noSuchStream]
    ) { $0.stream($1) },
    APIRoute(
      .delete, "/api/v1/streams/{stream}", .admin, "disconnects its publisher, and ends it",
      gives: .json(StreamAnswer.self),
      problems: [.noSuchStream]
    ) { $0.endStream($1) },
    APIRoute(
      .post, "/api/v1/streams/{stream}/capture/camera|microphone|controls|keyframe", .admin,
      "changes devices and their controls while they are live", gives: .json(CaptureAnswer.self),
      body: .text(
        "What is changed, as in a source: a device with its options, or `NAME=VALUE&NAME=VALUE`.",
        example: "v4l2:/dev/video0?rotate=90"),
      problems: [
        .noCapture, .malformedBody, .noDevice, .badControl, .optionFixed, .cameraEncodes, .noKeyFrames, .sourceEnded,
      ]
    ) { $0.captures.change($1) },
    APIRoute(
      .post, "/api/v1/streams/{stream}/recording/start|stop|cancel", .admin, "the stream's recording",
      gives: .state(RecordingStateAnswer.self),
      problems: [
        .invalidStreamName, .recordsNothing, .notLive, .alreadyRecording, .notRecording, .neverRecorded,
        .recordingsClosing,
      ]
    ) { $0.recordingAPI.control($1) },
  ]

  private static let ofRecordings: [ProblemKind] = [.noSuchRecording, .diskNotResponding]
}

/// `/api/v1/admin`.
struct AdminAnswer: APIObject {
  let admin: Bool
}

package import HTTP
internal import NIOHTTP1

/// The causes that the routes know.
extension ProblemKind {
  // MARK: Addresses and access

  package static let noSuchAddress = ProblemKind(
    "no-such-address", .notFound, "Not found", "The API has no such address.")
  package static let readOnly = ProblemKind(
    "read-only", .forbidden, "Read-only", "The server was started without an admin token.")
  package static let otherOrigin = ProblemKind(
    "other-origin", .forbidden, "Another origin", "The request comes from a page of another origin.")
  package static let tokenMissing = ProblemKind(
    "token-missing", .unauthorized, "Not authorized", "The request has no admin token.")
  package static let tokenWrong = ProblemKind(
    "token-wrong", .unauthorized, "Not authorized", "The admin token is wrong.")
  package static let tooManyWrongTokens = ProblemKind(
    "too-many-wrong-tokens", .tooManyRequests, "Too many wrong tokens",
    "The address has sent too many wrong admin tokens.")
  package static let malformedQuery = ProblemKind(
    "malformed-query", .badRequest, "Bad request", "A value of the query cannot be used.")
  package static let malformedBody = ProblemKind(
    "malformed-body", .badRequest, "Bad request", "The body cannot be used.")

  package static let unusableValue = ProblemKind(
    "unusable-value", .unprocessableEntity, "Unusable value", "A value of the body cannot be used.")
  package static let notOurs = ProblemKind(
    "not-ours", .notFound, "Not found", "The address is not that of a stream's page of this server.")
  package static let oEmbedFormat = ProblemKind(
    "oembed-format", .notImplemented, "Not implemented", "oEmbed is given as JSON only.")
  package static let scopeTooSmall = ProblemKind(
    "scope-too-small", .forbidden, "Not allowed", "The token is valid, but its scope does not include this.")

  // MARK: Keys, settings and events

  package static let keyExists = ProblemKind(
    "key-exists", .conflict, "Not now", "A key of that name exists, or there are as many keys as there may be.")
  package static let noSuchKey = ProblemKind("no-such-key", .notFound, "Not found", "There is no key of that name.")
  package static let keyIsConfigured = ProblemKind(
    "key-is-configured", .conflict, "In the file", "The key stands in the configuration file.")
  package static let needsState = ProblemKind(
    "needs-state", .conflict, "Needs a state folder", "The server keeps no state (--state), so it would be forgotten.")
  package static let settingsFixed = ProblemKind(
    "settings-fixed", .notFound, "Not found", "The settings of this server cannot be read again.")
  package static let settingsRefused = ProblemKind(
    "settings-refused", .unprocessableEntity, "Settings refused", "The settings have a mistake; the old ones go on.")
  package static let tooManyEventStreams = ProblemKind(
    "too-many-event-streams", .tooManyRequests, "Too many", "As many streams of events are open as may be.")

  package static let listsBusy = ProblemKind(
    "lists-busy", .serviceUnavailable, "Full", "Too many lists are being made.")
  package static let viewerNotAllowed = ProblemKind(
    "viewer-not-allowed", .forbidden, "Not allowed", "The stream needs a token that allows to watch it.")

  // MARK: Publishing by HTTP

  static let publishKeyWrong = ProblemKind(
    "publish-key-wrong", .unauthorized, "Not authorized", "The publish key is missing or wrong.")
  static let accessUnanswered = ProblemKind(
    "access-unanswered", .serviceUnavailable, "No answer", "The server that decides about publishers does not answer.")
  static let addressNotAllowed = ProblemKind(
    "address-not-allowed", .forbidden, "Not allowed", "The stream takes publishers from other addresses only.")
  static let streamBusy = ProblemKind("stream-busy", .conflict, "Busy", "Another publisher has the name.")
  static let tooManyPublications = ProblemKind(
    "too-many-publications", .tooManyRequests, "Too many publications",
    "The stream or the address has more publications or names than it may have.")
  static let tooManyUploads = ProblemKind(
    "too-many-uploads", .tooManyRequests, "Too many requests", "Too many requests of the address wait to publish.")
  static let noRoom = ProblemKind(
    "no-room", .serviceUnavailable, "No room", "The server has no room for another stream, or shuts down.")
  static let notMPEGTS = ProblemKind(
    "not-mpeg-ts", .unsupportedMediaType, "Not MPEG-TS", "The body is of another type than MPEG transport streams.")
  static let unusableMedia = ProblemKind(
    "unusable-media", .unprocessableEntity, "Unusable media", "The media cannot be published.")
  static let webRTCOff = ProblemKind(
    "webrtc-off", .notFound, "Not found", "The server takes no WebRTC (--webrtc).")
  static let notAnOffer = ProblemKind(
    "not-an-offer", .unsupportedMediaType, "Not an offer", "The body is of another type than offers of WebRTC.")
  static let offerNotTaken = ProblemKind(
    "offer-not-taken", .unprocessableEntity, "Offer not taken", "The server can take nothing of what is offered.")
  static let nothingFits = ProblemKind(
    "nothing-fits", .unprocessableEntity, "Nothing fits",
    "Nothing of the stream can be sent to the viewer by WebRTC: codecs, or B-frames.")
  static let conditionMissing = ProblemKind(
    "condition-missing", .preconditionRequired, "Condition missing", "The change needs If-Match.")
  static let conditionFailed = ProblemKind(
    "condition-failed", .preconditionFailed, "Condition failed", "If-Match names another state.")
  static let sessionEnded = ProblemKind("session-ended", .gone, "Ended", "The server ended the session of WebRTC.")
  static let publicationEnded = ProblemKind(
    "publication-ended", .conflict, "Ended", "The server ended the publication.")

  // MARK: Streams

  package static let invalidStreamName = ProblemKind(
    "invalid-stream-name", .notFound, "Not found", "No stream can have that name.")
  package static let noSuchStream = ProblemKind(
    "no-such-stream", .notFound, "Not found", "No stream has that name now.")
  static let streamEnded = ProblemKind("stream-ended", .notFound, "Not found", "The stream has ended.")
  static let epochEnded = ProblemKind(
    "epoch-ended", .notFound, "Not found", "This part of the stream has ended and is no longer available.")
  static let noVideo = ProblemKind("no-video", .notFound, "Not found", "The stream has no video.")
  static let playlistTooFarAhead = ProblemKind(
    "playlist-too-far-ahead", .badRequest, "Bad request", "The playlist is requested for a segment that is not next.")
  static let rangeNotSatisfiable = ProblemKind(
    "range-not-satisfiable", .rangeNotSatisfiable, "Range not satisfiable",
    "The range begins behind the existing bytes.")
  static let tooManyViewers = ProblemKind(
    "too-many-viewers", .serviceUnavailable, "Full", "The server has as many viewers as it may have (--max-viewers).")

  package static let noSuchSession = ProblemKind(
    "no-such-session", .notFound, "Not found", "No session has that id now.")

  // MARK: Thumbnails

  package static let noKeyFrameYet = ProblemKind(
    "no-key-frame-yet", .serviceUnavailable, "Not yet", "The stream or source has no key frame yet.")
  package static let thumbnailsBusy = ProblemKind(
    "thumbnails-busy", .serviceUnavailable, "Busy", "Other thumbnails are being made.")
  package static let noThumbnail = ProblemKind(
    "thumbnail-failed", .internalServerError, "No thumbnail", "The key frame cannot be decoded.")

  // MARK: Recordings

  package static let noSuchRecording = ProblemKind(
    "no-such-recording", .notFound, "Not found", "There is no such recording, or no such part of it.")
  package static let noStorage = ProblemKind("no-storage", .notFound, "Not found", "The server records nothing.")
  package static let recordsNothing = ProblemKind(
    "records-nothing", .conflict, "Not now", "The server records nothing (--record).")
  package static let recordingRuns = ProblemKind(
    "recording-runs", .conflict, "Not now", "The recording is being written.")
  package static let recordingProtected = ProblemKind(
    "recording-protected", .conflict, "Not now", "The recording is protected.")
  package static let recordingNotDeleted = ProblemKind(
    "recording-not-deleted", .conflict, "Not now", "Only a deleted recording can be restored.")
  package static let recordingUnfinished = ProblemKind(
    "recording-unfinished", .conflict, "Not now", "The server finishes the recording at its next start.")
  package static let diskFailed = ProblemKind(
    "disk-failed", .internalServerError, "Disk", "The disk refused the change.")
  package static let notLive = ProblemKind("not-live", .notFound, "Not found", "No live stream has that name.")
  package static let alreadyRecording = ProblemKind(
    "already-recording", .conflict, "Not now", "The stream is being recorded already.")
  package static let notRecording = ProblemKind(
    "not-recording", .conflict, "Not now", "The stream is not being recorded.")
  package static let neverRecorded = ProblemKind(
    "never-recorded", .conflict, "Not now", "The stream is never recorded.")
  package static let noSuchTrack = ProblemKind(
    "no-such-track", .conflict, "Not now", "The stream does not have the chosen tracks now.")
  package static let recordingsClosing = ProblemKind(
    "recordings-closing", .conflict, "Not now", "Earlier recordings of the stream are still being written.")

  // MARK: Clips

  package static let clipTooLong = ProblemKind(
    "clip-too-long", .badRequest, "Bad request", "The clip is longer than the limit.")
  package static let clipWithoutClock = ProblemKind(
    "clip-without-clock", .badRequest, "Bad request", "The recording has no time of day to find the place by.")
  package static let clipEmpty = ProblemKind(
    "clip-empty", .badRequest, "Bad request", "The clip ends before it begins.")
  package static let clipOutside = ProblemKind(
    "clip-outside", .notFound, "Not found", "The recording has no media in that range.")
  package static let clipsBusy = ProblemKind(
    "clips-busy", .serviceUnavailable, "Full", "Other long clips are being made or sent.")

  // MARK: Own sources

  package static let noSuchSource = ProblemKind(
    "no-such-source", .notFound, "Not found", "No own source has that name.")
  package static let sourceStopping = ProblemKind(
    "source-stopping", .conflict, "Not now", "The source is being stopped.")
  package static let sourceEnded = ProblemKind(
    "source-ended", .conflict, "Not now", "The source is not running, or ended before anything was recorded.")
  package static let sourceNotAdmitted = ProblemKind(
    "source-not-admitted", .conflict, "Not now", "The source cannot be published, like a publisher that is refused.")
  package static let noCapture = ProblemKind(
    "no-capture", .notFound, "Not found", "The stream does not come from a camera or microphone of the server.")
  package static let noDevice = ProblemKind(
    "no-device", .conflict, "Not now", "The capture has no camera or no microphone.")
  package static let badControl = ProblemKind(
    "bad-control", .conflict, "Not now", "The camera has no such control, or not that value.")
  package static let optionFixed = ProblemKind(
    "option-fixed", .badRequest, "Bad request", "The option cannot be changed while the stream is live.")
  package static let cameraEncodes = ProblemKind(
    "camera-encodes", .badRequest, "Bad request", "The camera encodes by itself; encoder options have no effect on it.")
  package static let noKeyFrames = ProblemKind(
    "no-key-frames", .conflict, "Not now", "The camera makes no key frames on request.")

  /// Every cause that a response can have.
  package static let all: [ProblemKind] =
    ofHTTP + [
      unusableValue, scopeTooSmall, keyExists, noSuchKey, keyIsConfigured, needsState, settingsFixed, settingsRefused,
      tooManyEventStreams, listsBusy, viewerNotAllowed, publishKeyWrong, accessUnanswered, addressNotAllowed,
      streamBusy, tooManyPublications,
      tooManyUploads, noRoom, notMPEGTS, unusableMedia, publicationEnded, sessionEnded, webRTCOff, notAnOffer,
      offerNotTaken, nothingFits,
      conditionMissing, conditionFailed, noSuchAddress, readOnly, otherOrigin,
      tokenMissing, tokenWrong, tooManyWrongTokens, malformedQuery, malformedBody, notOurs,
      oEmbedFormat,
      invalidStreamName, noSuchStream, streamEnded, epochEnded, noVideo, playlistTooFarAhead, rangeNotSatisfiable,
      tooManyViewers, noSuchSession, noKeyFrameYet, thumbnailsBusy, noThumbnail, noSuchRecording, noStorage,
      recordsNothing,
      recordingRuns, recordingProtected, recordingNotDeleted, recordingUnfinished, diskFailed, notLive,
      alreadyRecording, notRecording, neverRecorded, recordingsClosing, noSuchTrack, clipTooLong, clipWithoutClock,
      clipEmpty,
      clipOutside, clipsBusy, noSuchSource, sourceStopping, sourceEnded, sourceNotAdmitted, noCapture, noDevice,
      badControl, optionFixed, cameraEncodes, noKeyFrames,
    ]
}

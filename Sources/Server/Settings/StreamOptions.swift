internal import Base
internal import Control
internal import FMP4
internal import LocalSources
internal import Playlists
internal import Publishing
internal import Streams

/// How streams are cut, what is kept of them, and what is transcoded.
struct StreamOptions: TitledSettings {
  static let title = "Streams"

  let partDuration = Setting(
    "part-duration", at: "streams.*.partDuration", .duration(.milliseconds(20) ... .seconds(10)), default: "200ms",
    "Length of a fragment.")
  let segmentDuration = Setting(
    "segment-duration", at: "streams.*.segmentDuration", .duration(.milliseconds(100) ... .seconds(60)), default: "2s",
    "Length of a segment.")
  let targetDuration = Setting(
    "target-duration", at: "streams.*.targetDuration",
    SettingText(
      "auto|seconds", values: .pattern("^(auto|[0-9]+s?)$", orNumber: true),
      StreamSettings.TargetDuration.init(parsing:)),
    default: "auto",
    "EXT-X-TARGETDURATION: auto, or seconds.")
  let hlsLayout = Setting<StreamSettings.HLSLayout>(
    "hls-layout", at: "streams.*.hlsLayout", .word, default: "interleaved",
    "Video and audio in one HLS segment, or each in its own.")
  let partAddressing = Setting<StreamSettings.PartAddressing>(
    "part-addressing", at: "streams.*.partAddressing", .word, default: "url",
    "Parts by addresses of their own, or as ranges of segments.")
  let rotate = Setting(
    "rotate", at: "streams.*.rotate",
    SettingText(
      "0|90|180|270|mirrored|mirrored-90|…",
      values: .pattern("^(0|90|180|270|mirrored|mirrored-(90|180|270))$", orNumber: true),
      OptionValues.rotation), default: "0",
    "Turn the video for players: mirrored, then clockwise. Nothing is encoded again.")
  let ladder = Setting(
    "ladder", at: "streams.*.ladder", "[name=]rungs", shape: .joined,
    split: { $0.split(separator: ";").map(String.init) },
    named: LadderSpecification.named,
    "Transcode to smaller sizes: 720p@3M,360p@800k, of all streams or of one.", read: LadderSpecification.rungs)
  let audioCodec = Setting(
    "audio-codec", at: "streams.*.audioCodec", "[name=]source|aac|opus", split: { $0.commaSeparated },
    named: AudioSettingText.named,
    "Offer the audio in another codec, too: aac or opus; without it AAC beside AC-3 and E-AC-3 alone.",
    read: AudioSettingText.audio)
  let webRTCEncoding = Setting<StreamSettings.WebRTCEncoding>(
    "webrtc-encoding", at: "streams.*.webrtcEncoding", .word, default: "auto",
    "Encode anew what WebRTC or MP4 does not carry, or nothing: H.264 and Opus for its viewers, VP8 of its publishers.")
  let audioDefault = Setting(
    "audio-default", at: "streams.*.audioDefault",
    SettingText("language", values: .pattern("^[A-Za-z]{2,3}(-[A-Za-z0-9-]+)?$")) { text throws(ValueError) in
      guard let code = LanguageCode.three(text) else {
        throw ValueError("it is no language", advice: "write a code as de or deu")
      }
      return code
    }, "Language of the audio that players begin with, of several; else the first.")
  let audioLanguages = Setting(
    "audio-languages", at: "streams.*.audioLanguages",
    SettingText(
      "track=language,…",
      values: .pattern("^audio(-[0-9]{1,2})?=[A-Za-z-]+(,audio(-[0-9]{1,2})?=[A-Za-z-]+)*$"), AudioTracksText.languages),
    "Languages of tracks of audio, for publishers that state none or wrong ones: audio=en,audio-2=de.")
  let audioNames = Setting(
    "audio-names", at: "streams.*.audioNames",
    SettingText(
      "track=name,…", values: .pattern("^[a-z0-9-]+=[^,=]+(,[a-z0-9-]+=[^,]+)*$"), AudioTracksText.names),
    "What viewers read in the audio menu, by track or language: audio-2=Commentary,de=Deutsch.")
  let captions = Setting(
    "captions", at: "streams.*.captions",
    SettingText(
      "auto|none|CC1=en,…",
      values: .pattern(
        "^(auto|none|(CC[1-4]|SERVICE[0-9]{1,2})(=[A-Za-z-]+)?(,(CC[1-4]|SERVICE[0-9]{1,2})(=[A-Za-z-]+)?)*)$"),
      CaptionText.rule), default: "auto",
    "Closed captions in the video that playlists declare: those that are found, none, or these.")
  let window = Setting(
    "window", at: "streams.*.window", .duration(.seconds(1) ... .seconds(86_400)), default: "60s",
    "Media kept in memory; viewers can go back half of it.")
  let rewind = Setting(
    "rewind", at: "streams.*.rewind", .duration(.seconds(1) ... .seconds(7 * 86_400)),
    "How far viewers can go back on disk: recordings, or a time-shift buffer.")
  let reconnectWindow = Setting(
    "reconnect-window", at: "streams.*.reconnectWindow", .duration(.zero ... .seconds(86_400)), default: "30s",
    "How long a stream waits for a lost publisher.")
  let end = Setting<EndWord>(
    "end", at: "streams.*.end", .word, default: "publisher",
    "What ends a stream: its publisher's stop; nobody publishing for --linger; nothing but a request.")
  let linger = Setting(
    "linger", at: "streams.*.linger", .duration(.seconds(1) ... .seconds(30 * 86_400)),
    "How long a stream of --end linger waits for the next publisher; without it --reconnect-window.")
  let fallback = Setting(
    "fallback", at: "streams.*.fallback",
    SettingText(
      "test|file:path|stream:name", values: .pattern("^(test|file:.+|stream:.+)$"), Fallback.init(parsing:)),
    "What takes the place of a publisher that is away: the test pattern, a film or a picture, another stream.")
  let fallbackAfter = Setting(
    "fallback-after", at: "streams.*.fallbackAfter", .duration(.seconds(1) ... .seconds(86_400)), default: "5s",
    "How long a publisher may send no video until its fallback takes its place.")
  let segments = Setting(
    "segments", at: "segments.folder", .folder, "Folder to write rolling segments and playlists to.")
  let state = Setting(
    "state", at: "state.folder", .folder, "Folder that lets streams go on where weir stops, or dies, and starts again.")
  let viewers = Setting<ViewersRule>(
    "viewers", at: "streams.*.viewers", .word, default: "open",
    "Who may watch: every client, or those with a token.")
  let maxJumps = Setting(
    "max-jumps", at: "streams.*.limits.jumps", .count(1...100_000), default: "120",
    "Jumps of timestamps a minute; a publisher with more is ended.")
  let maxChanges = Setting(
    "max-changes", at: "streams.*.limits.changes", .count(1...100_000), default: "30",
    "Changes of codec or frame size a minute, likewise.")

  let takeover = Setting<PublisherRule.Takeover>(
    "takeover", at: "streams.*.takeover", .word, default: "newest",
    "Which of two publishers with keys of a name gets it: the newest, or the first as long as it sends.")
  let publishFrom = Setting(
    each: "publish-from", at: "streams.*.publishFrom", SettingText("CIDR", AddressRange.parse),
    "Addresses that may publish; without it, all.")
  let title = Setting(
    "title", at: "streams.*.title", .words(atMost: 200), "Title of a stream, for its page and the API.")
  let description = Setting(
    "description", at: "streams.*.description", .words(atMost: 2000), "What a stream shows, likewise.")

  /// The smallest number of segments in a window. A player that joins needs three target durations (RFC 8216 §6.2.2).
  private static let segmentsInWindow = 3

  func settings(_ given: SettingSources, publicURL: PublicURL?) throws(ConfigurationError) -> StreamSettings {
    try checkDurations(given)
    var settings = StreamSettings()
    settings.partTarget = MediaTime(try given[partDuration])
    settings.segmentTarget = MediaTime(try given[segmentDuration])
    settings.targetDuration = try given[targetDuration]
    settings.window = MediaTime(try given[window])
    settings.rewind = try given[rewind].map { MediaTime($0) }
    settings.reconnectWindow = MediaTime(try given[reconnectWindow])
    settings.end = try endRule(given)
    settings.fallback = try given[fallback]
    settings.fallbackAfter = MediaTime(try given[fallbackAfter])
    settings.bounds.jumpsPerMinute = try given[maxJumps]
    settings.bounds.changesPerMinute = try given[maxChanges]
    settings.publishers = PublisherRule(takeover: try given[takeover], from: try given[publishFrom])
    settings.title = try given[title]
    settings.description = try given[description]
    settings.periodsToKeep = DASHManifest.periodsToKeep
    settings.rotation = try given[rotate]
    settings.layout = try given[hlsLayout]
    settings.partAddressing = try given[partAddressing]
    settings.ladder = try given[ladder]
    let audio = try given[audioCodec]
    settings.audio = audio?.audio
    settings.addsPlayableAudio = audio == nil
    settings.encodesForWebRTC = try given[webRTCEncoding]
    settings.audioDefault = try given[audioDefault]
    settings.audioLanguages = try given[audioLanguages] ?? [:]
    settings.audioNames = try given[audioNames] ?? AudioNames()
    settings.captions = try given[captions]
    if !settings.ladder.isEmpty || settings.audio != nil { settings.layout = .separate }
    settings.publicURL = publicURL
    return settings
  }

  private func endRule(_ given: SettingSources) throws(ConfigurationError) -> StreamSettings.EndRule {
    let word = try given[end]
    let (time, standard) = (try given[linger], try given[reconnectWindow])
    // Where `end` is set, it may be to except a stream from what holds for all.
    if time != nil, word != .linger, given.isStandard(end) {
      throw given.error(
        linger, "only a stream of \(end.name.flag) linger waits that long", "add \(end.name.flag) linger")
    }
    switch word {
    case .publisher: return .publisher
    case .linger: return .linger(MediaTime(time ?? standard))
    case .never: return .never
    }
  }

  private func checkDurations(_ given: SettingSources) throws(ConfigurationError) {
    let segment = try given[segmentDuration]
    let text = DurationText.text(segment)
    guard try given[partDuration] < segment else {
      throw given.error(
        partDuration, "a part must be shorter than a segment (\(text))",
        "shorten it or lengthen \(segmentDuration.name.flag)")
    }
    let least = segment * Self.segmentsInWindow
    guard try given[window] >= least else {
      throw given.error(
        window, "the window must hold \(Self.segmentsInWindow) segments of \(text)",
        "use at least \(DurationText.text(least))")
    }
    if case .seconds(let seconds) = try given[targetDuration], Duration.seconds(seconds) < segment {
      throw given.error(
        targetDuration, "no segment may last longer than it, and segments aim at \(text)",
        "use \((segment.wholeMilliseconds &+ 999) / 1000) or more, or auto")
    }
  }
}

extension Fallback {
  /// Parses `test`, `file:PATH` or `stream:NAME`.
  init(parsing text: String) throws(ValueError) {
    let advice = "write test, file:PATH or stream:NAME"
    if text == "test" {
      self = .test
    } else if let path = text.rest(after: "file:") {
      guard !path.isEmpty else { throw ValueError("no file is named", advice: advice) }
      self = .file(path: path)
    } else if let name = text.rest(after: "stream:") {
      self = .stream(try StreamName(parsing: name))
    } else {
      throw ValueError("it is no fallback", advice: advice)
    }
  }
}

/// What ends a stream.
enum EndWord: String, CaseIterable, Sendable {
  case publisher, linger, never
}

extension StreamSettings.TargetDuration {
  /// Parses `auto` or a whole number of seconds (`6`, `6s`).
  init(parsing text: String) throws(ValueError) {
    if text == "auto" {
      self = .automatic
      return
    }
    let digits = text.hasSuffix("s") ? String(text.dropLast()) : text
    self = .seconds(try WholeNumber.parse(digits, in: 1...120, orElse: "auto"))
  }
}

extension SettingText<String> {
  /// A text for people, without line breaks and other control characters.
  fileprivate static func words(atMost limit: Int) -> Self {
    Self("text") { text throws(ValueError) in
      guard !text.isEmpty, text.count <= limit,
        text.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
      else { throw ValueError("that is no text of 1 to \(limit) characters in one line", advice: "shorten it") }
      return text
    }
  }
}

extension MediaTime {
  /// Whole milliseconds of a duration.
  init(_ duration: Duration) { self.init(milliseconds: duration.wholeMilliseconds) }
}

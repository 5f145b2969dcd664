internal import FMP4
internal import LibAV
internal import NIOCore

/// What to make of one video or audio track.
struct TranscodePlan: Sendable {
  /// The worker's configuration.
  enum Work: Sendable, Hashable {
    case video(TranscodeConfiguration)
    case audio(AudioTranscodeConfiguration)
  }

  let source: TrackDescription
  let work: Work
  /// Ladder index of each rung to make; 0 for audio.
  let numbers: [Int]

  private init(_ source: TrackDescription, _ work: Work, numbers: [Int]) {
    self.source = source
    self.work = work
    self.numbers = numbers
  }

  /// Nil if the track is not transcoded.
  init?(source: TrackDescription, aim: TranscodeAim) {
    switch aim {
    case .video(let ladder): self.init(source: source, ladder: ladder)
    case .audio(let audio):
      guard let configuration = AudioTranscodeConfiguration(source: source, as: audio),
        configuration.record.count <= TranscodeLimits.recordBytes
      else { return nil }
      self.init(source, .audio(configuration), numbers: [0])
    }
  }

  /// Nil if no rung is smaller than the source.
  init?(source: TrackDescription, ladder: [RungSpecification]) {
    guard let size = source.codec.displaySize else { return nil }
    let numbers = ladder.indices.prefix(TranscodeLimits.rungs).filter { ladder[$0].applies(toSource: size) }
    guard !numbers.isEmpty else { return nil }
    let record = source.codec.record()
    guard record.count <= TranscodeLimits.recordBytes, source.timescale <= UInt32(Int32.max) else { return nil }
    let color = source.color
    var frameDuration = source.frameDuration ?? 0
    if frameDuration == 0, let rate = source.codec.frameRate, rate.framesPerSecond > 0 {
      frameDuration = UInt32(min(Double(source.timescale) / rate.framesPerSecond, Double(source.timescale)))
    }
    let configuration = TranscodeConfiguration(
      codec: source.codec.id, record: record, timescale: source.timescale, frameDuration: frameDuration,
      color: [color?.primaries ?? 2, color?.transfer ?? 2, color?.matrix ?? 2],
      rungs: numbers.map { number in
        let side = ladder[number].size(ofSource: size)
        let rate = ladder[number].bitRate(
          forSize: side, framesPerSecond: frameDuration > 0 ? Double(source.timescale) / Double(frameDuration) : 30)
        return TranscodeConfiguration.Rung(
          width: UInt16(clamping: side.width), height: UInt16(clamping: side.height),
          bitRate: UInt32(clamping: rate), preset: ladder[number].preset)
      })
    self.init(source, .video(configuration), numbers: numbers)
  }

  /// Bytes of the decoder's configuration record.
  var recordBytes: Int {
    switch work {
    case .video(let configuration): configuration.record.count
    case .audio(let configuration): configuration.record.count
    }
  }

  /// Timescale of the source's times, in ticks per second.
  var timescale: UInt32 { source.timescale }

  /// First message to a worker.
  var request: TranscodeRequest {
    switch work {
    case .video(let configuration): .configure(configuration)
    case .audio(let configuration): .configureAudio(configuration)
    }
  }

  /// Text for log lines.
  var description: String {
    switch work {
    case .video(let configuration):
      configuration.rungs.map { "\($0.width)×\($0.height) at \($0.bitRate / 1000) kbit/s" }.joined(separator: ", ")
    case .audio(let configuration):
      "\(configuration.coding.name) at \(configuration.bitRate / 1000) kbit/s"
    }
  }

  /// Track description of a rung's output, from its encoder's record.
  func track(ofRung index: Int, record: ByteBuffer) throws(CodecError) -> TrackDescription {
    switch work {
    case .video:
      return TrackDescription(
        id: source.id, codec: Codec(try H264.Configuration(record: record)), timescale: source.timescale,
        frameDuration: source.frameDuration, language: source.language, rotation: source.rotation)
    case .audio(let configuration):
      let codec = try Codec(configuration.coding, record: record)
      return TrackDescription(
        id: source.id, codec: codec, timescale: configuration.sampleRate,
        frameDuration: codec.configuration.frameDuration == nil ? AudioEncoding.all[codec.id]?.samples : nil,
        language: source.language)
    }
  }
}

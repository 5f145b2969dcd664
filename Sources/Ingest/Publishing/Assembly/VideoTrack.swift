internal import Base
internal import FMP4
internal import NIOCore

/// The incoming video of one track: configuration, access units, and the frame grid.
struct VideoTrack {
  /// An access unit as received, before its time is put on the grid.
  struct Unit {
    var track: TrackID
    /// Nanoseconds on the publication's timeline.
    var time: Int64
    /// Presentation minus decode time, in nanoseconds.
    var composition: Int64
    var isSync: Bool
    var isDisposable: Bool
    var payload: ByteBuffer
    /// The track's clock was realigned before this frame.
    var isMoved: Bool
  }

  let id: TrackID
  /// Ticks per second of the protocol's times.
  private let wire: UInt32
  /// Times are those at which pictures were taken: the rate that a bitstream states is no promise.
  private let isCaptured: Bool
  private(set) var codec: Codec?
  /// It has a codec. Asked for each frame, and cheaper than a look at `codec`.
  private(set) var isConfigured = false
  /// The last record, to detect a repetition without parsing.
  private var record: (CodecID, ByteBuffer)?
  /// The frames' duration by the present configuration and the rate that metadata state.
  private var frameLength: (stated: Double?, nanoseconds: Int64)?
  /// Before the first key frame of the present configuration nothing can be decoded.
  private(set) var awaitsKeyFrame = true
  /// The configuration has not been announced yet.
  var isUnannounced = true
  var refresh = GradualRefresh()
  /// The last access unit was a frame that cannot be decoded, because no key frame or another codec came before it.
  private(set) var lacksKeyFrame = false
  /// The last access unit said that its picture becomes whole from there on.
  private(set) var isGradualRefresh = false
  /// Colours: stated by the publisher, from the first messages in the bitstream, and as announced.
  private var statedColor: VideoColor?
  private var messagedColor: VideoColor?
  private var announcedColor: VideoColor?
  /// The track as announced. Nil before that.
  private(set) var description: TrackDescription?
  private var color: VideoColor? { .together(statedColor, messagedColor) }
  private var grid = FrameGrid(rate: nil)
  /// Services of closed captions so far, and whether all of them were told.
  private var captions = CaptionServices()
  private var hasNewCaptions = false
  /// Earliest presentation time of the newest GOP minus its first decode time, in nanoseconds.
  private(set) var reorderDelay: Int64 = 0
  /// Presentation end of the frames so far, in nanoseconds.
  private var presentationEnd: Int64?

  /// Least change of the reorder delay that affects times of day, in nanoseconds.
  private static let noticeable: Int64 = 20_000_000

  init(_ id: TrackID, wire: UInt32 = 1000, isCaptured: Bool = false) {
    (self.id, self.wire, self.isCaptured) = (id, wire, isCaptured)
  }

  /// Whether the configuration is the last one again.
  func repeats(_ coding: CodecID, _ bytes: ByteBuffer) -> Bool {
    record.map { $0.0 == coding && $0.1 == bytes } ?? false
  }

  /// Takes a configuration record. True if it changes the video's parameters.
  mutating func configure(_ coding: CodecID, _ bytes: ByteBuffer) throws(CodecError) -> Bool {
    if repeats(coding, bytes) { return false }
    let new = try Codec(coding, record: bytes)
    record = (coding, bytes)
    guard new != codec else {
      // The content is equal, but the size of NAL unit lengths may differ.
      codec = new
      frameLength = nil
      return false
    }
    change(to: new)
    return true
  }

  /// Takes the publisher's statement about colours. After the start it applies from the next key frame on.
  mutating func state(_ color: VideoColor?) {
    statedColor = color
  }

  private mutating func change(to new: Codec) {
    codec = new
    isConfigured = true
    frameLength = nil
    messagedColor = nil
    awaitsKeyFrame = true
    isUnannounced = true
  }

  /// The access unit of a payload. Nil if it cannot be decoded yet or is empty. New parameter sets in the bitstream
  /// change the configuration first.
  mutating func accessUnit(_ coding: CodecID, _ bytes: ByteBuffer) throws(CodecError) -> AccessUnit? {
    lacksKeyFrame = codec?.id != coding
    guard let codec, codec.id == coding, let unit = try codec.accessUnit(bytes) else { return nil }
    if let new = codec.updated(withParameterSets: unit.parameterSets) { change(to: new) }
    isGradualRefresh = unit.isGradualRefresh
    if awaitsKeyFrame {
      guard unit.isSync else {
        lacksKeyFrame = unit.payload.readableBytes > 0
        return nil
      }
      awaitsKeyFrame = false
    }
    let known = captions
    captions.formUnion(unit.captions)
    if captions != known { hasNewCaptions = true }
    if unit.isSync {
      let said = VideoColor(masteringDisplay: unit.masteringDisplay, lightLevel: unit.lightLevel)
      // Only the first message counts. Encoders that measure light levels as they go would otherwise begin a new track
      // with each key frame.
      if messagedColor == nil, said != VideoColor() { messagedColor = said }
      if color != announcedColor { isUnannounced = true }
    }
    return unit.payload.readableBytes > 0 ? unit : nil
  }

  /// All services of closed captions, if there are new ones.
  mutating func newCaptions() -> CaptionServices? {
    defer { hasNewCaptions = false }
    return hasNewCaptions ? captions : nil
  }

  /// Fixes frame rate and timescale, and describes the track. `stated` is the metadata's frame rate.
  mutating func announce(stated: Double?) -> TrackDescription? {
    guard let codec else { return nil }
    isUnannounced = false
    announcedColor = color
    let rate = Self.rate(of: codec, stated: stated)
    let new = FrameGrid(rate: rate, wire: wire, isCaptured: isCaptured)
    if new.timescale != grid.timescale || new.frameDuration != grid.frameDuration { grid = new }
    description = TrackDescription(
      id: id, codec: codec, timescale: grid.timescale, frameDuration: isCaptured ? nil : grid.frameDuration,
      statedColor: announcedColor)
    return description
  }

  /// Duration of a frame in nanoseconds, in whole milliseconds. 0 if the rate is unknown.
  mutating func frameLength(stated: Double?) -> Int64 {
    if let frameLength, frameLength.stated == stated { return frameLength.nanoseconds }
    let rate = codec.flatMap { Self.rate(of: $0, stated: stated) }?.framesPerSecond ?? 0
    let length = rate >= 1 ? Int64(1000 / rate) * 1_000_000 : 0
    frameLength = (stated, length)
    return length
  }

  /// Handles a break of the timeline before the next frame.
  mutating func forgetPresentation() { presentationEnd = nil }

  /// Records a frame's place on the timeline and its presentation, in nanoseconds. Returns whether the reorder delay
  /// has grown noticeably.
  mutating func note(isSync: Bool, at time: Int64, shown: Int64, until end: Int64) -> Bool {
    var isLater = false
    if isSync {
      // In an open GOP some frames are shown before the key frame.
      let delay = min(shown, presentationEnd ?? shown) &- time
      isLater = delay &- reorderDelay >= Self.noticeable
      reorderDelay = max(0, delay)
    }
    presentationEnd = max(presentationEnd ?? .min, end)
    return isLater
  }

  /// Makes a sample at the unit's time after `origin` (nanoseconds).
  mutating func sample(_ unit: Unit, origin: Int64) -> Sample {
    if unit.isMoved { grid.restart() }
    let place = grid.place(decode: unit.time &- origin, composition: unit.composition)
    return Sample(
      track: id, decodeTime: place.decodeTime, compositionOffset: place.compositionOffset,
      duration: place.duration, isSync: unit.isSync, isDisposable: unit.isDisposable, payload: unit.payload)
  }

  /// The more likely of the rates in the bitstream and in the metadata. A bitstream that states the rate of fields, or
  /// of a clock, yields to the metadata.
  private static func rate(of codec: Codec, stated: Double?) -> FrameRate? {
    let format = codec.videoFormat
    let inStream = FrameClock.recognise(format?.frameRate)
    guard let stated = stated.flatMap({ FrameClock.recognise(framesPerSecond: $0) }) else { return inStream }
    guard let inStream, format?.cadence == .fixed else { return stated }
    let ratio = inStream.framesPerSecond / stated.framesPerSecond
    return abs(ratio - 2) < 0.01 ? stated : inStream
  }
}

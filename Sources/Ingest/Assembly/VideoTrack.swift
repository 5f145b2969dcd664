internal import FMP4
internal import NIOCore

/// A publication's track of pictures on its way in: configuration, access units, and the frame grid.
struct VideoTrack {
  /// An access unit as it came, before its time is laid on a grid.
  struct Unit {
    var track: TrackID
    /// Nanoseconds on the publication's timeline.
    var time: Int64
    /// Presentation minus decode time, in nanoseconds.
    var composition: Int64
    var isSync: Bool
    var isDisposable: Bool
    var payload: ByteBuffer
    /// The track's clock was laid anew before it.
    var isMoved: Bool
  }

  let id: TrackID
  private(set) var codec: Codec?
  /// The record that came last, to know a repetition without parsing it.
  private var record: (CodecID, ByteBuffer)?
  /// Until the first key frame under the present configuration nothing can be decoded.
  private(set) var awaitsKeyFrame = true
  /// The configuration has not been told yet.
  var isUnannounced = true
  /// What the publisher states about colours, what the first messages in the bitstream say, and what was announced of it.
  private var statedColor: VideoColor?
  private var messagedColor: VideoColor?
  private var announcedColor: VideoColor?
  private var color: VideoColor? { .together(statedColor, messagedColor) }
  private var grid = FrameGrid(rate: nil)
  /// The earliest presentation time of the newest group of pictures minus its first decode time, in nanoseconds.
  private(set) var reorderDelay: Int64 = 0
  /// Where the presentation of the pictures so far ends, in nanoseconds.
  private var presentationEnd: Int64?

  /// Nanoseconds of reordering that times of day are to allow for.
  private static let noticeable: Int64 = 20_000_000

  init(_ id: TrackID) { self.id = id }

  /// Takes a configuration record; true when it changes the picture's parameters.
  mutating func configure(_ coding: CodecID, _ bytes: ByteBuffer) throws(CodecError) -> Bool {
    if let record, record.0 == coding, record.1 == bytes { return false }
    let new = try Codec(coding, record: bytes)
    record = (coding, bytes)
    guard new != codec else {
      // Equal in what it describes; the size of NAL unit lengths may still differ.
      codec = new
      return false
    }
    change(to: new)
    return true
  }

  /// Takes what the publisher states about colours. Once pictures have gone out, it counts from the next key frame on.
  mutating func state(_ color: VideoColor?) {
    statedColor = color
  }

  private mutating func change(to new: Codec) {
    codec = new
    messagedColor = nil
    awaitsKeyFrame = true
    isUnannounced = true
  }

  /// The access unit in a payload; nil when there is nothing to decode with, or nothing in it. Parameter sets
  /// that travel in the stream and differ change the configuration first.
  mutating func accessUnit(_ coding: CodecID, _ bytes: ByteBuffer) throws(CodecError) -> AccessUnit? {
    guard let codec, codec.id == coding, let unit = try codec.accessUnit(bytes) else { return nil }
    if let new = codec.updated(withParameterSets: unit.parameterSets) { change(to: new) }
    if awaitsKeyFrame {
      guard unit.isSync else { return nil }
      awaitsKeyFrame = false
    }
    if unit.isSync {
      let said = VideoColor(masteringDisplay: unit.masteringDisplay, lightLevel: unit.lightLevel)
      // The first counts: encoders that measure light as they go would begin a new track with each key frame.
      if messagedColor == nil, said != VideoColor() { messagedColor = said }
      if color != announcedColor { isUnannounced = true }
    }
    return unit.payload.readableBytes > 0 ? unit : nil
  }

  /// Settles rate and timescale, and describes the track. `stated` is the metadata's frame rate.
  mutating func announce(stated: Double?) -> TrackDescription? {
    guard let codec else { return nil }
    isUnannounced = false
    announcedColor = color
    let rate = Self.rate(of: codec, stated: stated)
    if FrameClock.timescale(for: rate) != grid.timescale || grid.frameDuration != FrameGrid(rate: rate).frameDuration {
      grid = FrameGrid(rate: rate)
    }
    return description
  }

  /// Between two pictures, where the rate is known: nanoseconds, of whole milliseconds.
  func frameLength(stated: Double?) -> Int64 {
    let rate = codec.flatMap { Self.rate(of: $0, stated: stated) }?.framesPerSecond ?? 0
    return rate >= 1 ? Int64(1000 / rate) * 1_000_000 : 0
  }

  /// The timeline breaks before the next picture.
  mutating func forgetPresentation() { presentationEnd = nil }

  /// Takes note of a picture's place on the timeline and of when it is shown, in nanoseconds. Returns whether the track's
  /// pictures are shown noticeably later than was known.
  mutating func note(isSync: Bool, at time: Int64, shown: Int64, until end: Int64) -> Bool {
    var isLater = false
    if isSync {
      // In an open group of pictures some are shown before the key frame.
      let delay = min(shown, presentationEnd ?? shown) &- time
      isLater = delay &- reorderDelay >= Self.noticeable
      reorderDelay = max(0, delay)
    }
    presentationEnd = max(presentationEnd ?? .min, end)
    return isLater
  }

  /// The track as it was announced.
  var description: TrackDescription? {
    codec.map {
      TrackDescription(
        id: id, codec: $0, timescale: grid.timescale, frameDuration: grid.frameDuration,
        statedColor: announcedColor)
    }
  }

  /// A sample at the unit's time after `origin`, in nanoseconds.
  mutating func sample(_ unit: Unit, origin: Int64) -> Sample {
    if unit.isMoved { grid.restart() }
    let place = grid.place(decode: unit.time &- origin, composition: unit.composition)
    return Sample(
      track: id, decodeTime: place.decodeTime, compositionOffset: place.compositionOffset,
      duration: place.duration, isSync: unit.isSync, isDisposable: unit.isDisposable, payload: unit.payload)
  }

  /// Of what the bitstream and the metadata say, the likelier: a bitstream that states the rate of fields, or of a
  /// clock, yields to the metadata.
  private static func rate(of codec: Codec, stated: Double?) -> FrameRate? {
    let picture = codec.picture
    let inStream = FrameClock.recognise(picture?.frameRate)
    guard let stated = stated.flatMap({ FrameClock.recognise(framesPerSecond: $0) }) else { return inStream }
    guard let inStream, picture?.cadence == .fixed else { return stated }
    let ratio = inStream.framesPerSecond / stated.framesPerSecond
    return abs(ratio - 2) < 0.01 ? stated : inStream
  }
}

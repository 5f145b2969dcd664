internal import Base
internal import FMP4
internal import NIOCore

/// The incoming audio of one track: configuration, frames, and the sample grid.
struct AudioTrack {
  /// A frame as received.
  struct Unit {
    var track: TrackID
    /// Nanoseconds on the publication's timeline.
    var time: Int64
    /// Ticks of the track's timescale.
    var duration: UInt32
    var payload: ByteBuffer
    /// The track's clock was realigned before this frame.
    var isMoved: Bool
  }

  let id: TrackID
  private(set) var codec: Codec?
  /// It has a codec. Asked for each frame, and cheaper than a look at `codec`.
  private(set) var isConfigured = false
  /// Timescale of the present configuration, in ticks per second. Asked for each frame, as well.
  private(set) var timescale: UInt32?
  /// The last record, to detect a repetition without parsing.
  private var record: (CodecID, ByteBuffer)?
  /// The newest configuration is supported.
  var isUsable = true
  /// The configuration has not been announced yet.
  var isUnannounced = true
  /// The track as announced. Nil before that.
  private(set) var description: TrackDescription?
  /// It was announced with another configuration or statement than it has now.
  var hasChanged: Bool { isUnannounced && isUsable && description != nil }
  private var grid = AudioGrid(timescale: 1)

  init(_ id: TrackID) { self.id = id }

  /// Whether the configuration is the last one again.
  func repeats(_ coding: CodecID, _ bytes: ByteBuffer) -> Bool {
    record.map { $0.0 == coding && $0.1 == bytes } ?? false
  }

  /// Takes a configuration. True if it changes the audio's parameters.
  mutating func configure(_ coding: CodecID, _ bytes: ByteBuffer) throws(CodecError) -> Bool {
    isUsable = true
    if repeats(coding, bytes) { return false }
    let new: Codec
    do {
      new = try Codec(coding, record: bytes)
    } catch {
      isUsable = false
      throw error
    }
    record = (coding, bytes)
    guard new != codec else { return false }
    codec = new
    timescale = new.audio?.sampleRate
    isConfigured = true
    isUnannounced = true
    return true
  }

  /// Duration of a frame in ticks. Nil if the present configuration cannot decode it.
  func duration(_ coding: CodecID, _ bytes: ByteBuffer) -> UInt32? {
    codec?.id == coding ? codec?.duration(of: bytes) : nil
  }

  /// Fixes the timescale and describes the track.
  mutating func announce() -> TrackDescription? {
    isUnannounced = false
    if let timescale, grid.timescale != timescale { grid = AudioGrid(timescale: timescale) }
    description = codec.map { TrackDescription(id: id, codec: $0, timescale: grid.timescale) }
    return description
  }

  /// Makes a sample at the unit's time after `origin` (nanoseconds). Nil if it is dropped. Returns a correction that
  /// begins with it.
  mutating func sample(_ unit: Unit, origin: Int64) -> (sample: Sample?, correction: AudioGrid.Correction?) {
    if unit.isMoved { grid.restart() }
    let place = grid.place(unit.time &- origin, duration: unit.duration)
    guard case .at(let time) = place else { return (nil, grid.correction) }
    return (
      Sample(track: id, decodeTime: time, duration: unit.duration, isSync: true, payload: unit.payload),
      grid.correction
    )
  }
}

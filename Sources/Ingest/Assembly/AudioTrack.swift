internal import FMP4
internal import NIOCore

/// A publication's track of audio on its way in: configuration, frames, and the sample grid.
struct AudioTrack {
  /// A frame as it came.
  struct Unit {
    var track: TrackID
    /// Nanoseconds on the publication's timeline.
    var time: Int64
    /// Ticks of the track's timescale.
    var duration: UInt32
    var payload: ByteBuffer
    /// The track's clock was laid anew before it.
    var isMoved: Bool
  }

  let id: TrackID
  private(set) var codec: Codec?
  /// The record that came last, to know a repetition without parsing it.
  private var record: (CodecID, ByteBuffer)?
  /// The newest configuration is of a form that weir takes.
  private(set) var isUsable = true
  /// The configuration has not been told yet.
  var isUnannounced = true
  private var grid = AudioGrid(timescale: 1)

  init(_ id: TrackID) { self.id = id }

  /// Takes a configuration; true when it changes the audio's parameters.
  mutating func configure(_ coding: CodecID, _ bytes: ByteBuffer) throws(CodecError) -> Bool {
    isUsable = true
    if let record, record.0 == coding, record.1 == bytes { return false }
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
    isUnannounced = true
    return true
  }

  /// Ticks a second of the present configuration.
  var timescale: UInt32? { codec?.audio?.sampleRate }

  /// The length of a frame in ticks; nil when it cannot be decoded under the present configuration.
  func duration(_ coding: CodecID, _ bytes: ByteBuffer) -> UInt32? {
    codec?.id == coding ? codec?.duration(of: bytes) : nil
  }

  /// Settles the timescale, and describes the track.
  mutating func announce() -> TrackDescription? {
    isUnannounced = false
    if let timescale, grid.timescale != timescale { grid = AudioGrid(timescale: timescale) }
    return description
  }

  /// The track as it was announced.
  var description: TrackDescription? {
    codec.map { TrackDescription(id: id, codec: $0, timescale: grid.timescale) }
  }

  /// A sample at the unit's time after `origin`, in nanoseconds; nil when it is dropped. A correction that this
  /// began is told.
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

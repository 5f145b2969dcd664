internal import FMP4
internal import NIOCore

/// A publication's sound on its way in: configuration, frames, and the sample grid.
struct AudioIntake {
  /// A frame as it came.
  struct Unit {
    /// Milliseconds on the publication's timeline.
    var time: Int64
    /// Ticks of the track's timescale.
    var duration: UInt32
    var payload: ByteBuffer
    /// The track's clock was laid anew before it.
    var isMoved: Bool
  }

  private(set) var codec: Codec?
  private var record: (FLVAudioTag.Coding, ByteBuffer)?
  /// The configuration has not been told yet.
  var isUnannounced = true
  private var grid = AudioGrid(timescale: 1)

  /// Takes a configuration; true when it changes the sound's parameters.
  mutating func configure(_ coding: FLVAudioTag.Coding, _ bytes: ByteBuffer) throws(CodecError) -> Bool {
    if let record, record.0 == coding, record.1 == bytes { return false }
    let new: Codec =
      switch coding {
      case .aac: .aac(try AAC.Configuration(audioSpecificConfig: bytes))
      case .opus: .opus(try Opus.Configuration(opusHead: bytes))
      }
    record = (coding, bytes)
    guard new != codec else { return false }
    codec = new
    isUnannounced = true
    return true
  }

  /// Ticks a second of the present configuration.
  var timescale: UInt32? {
    switch codec {
    case .aac(let configuration)?: configuration.samplingFrequency
    case .opus?: Opus.timescale
    default: nil
    }
  }

  /// The length of a frame in ticks; nil when it cannot be decoded under the present configuration.
  func duration(_ coding: FLVAudioTag.Coding, _ bytes: ByteBuffer) -> UInt32? {
    switch (coding, codec) {
    case (.aac, .aac(let configuration)?): configuration.samplesPerFrame
    case (.opus, .opus?): Opus.packetDuration(bytes)
    default: nil
    }
  }

  /// Settles the timescale, and describes the track.
  mutating func announce() -> TrackDescription? {
    isUnannounced = false
    if let timescale, grid.timescale != timescale { grid = AudioGrid(timescale: timescale) }
    return description
  }

  /// The track as it was announced.
  var description: TrackDescription? {
    codec.map { TrackDescription(id: .audio, codec: $0, timescale: grid.timescale) }
  }

  /// A sample at the unit's time after `origin`, in milliseconds; nil when it is dropped. A correction that this
  /// began is told.
  mutating func sample(_ unit: Unit, origin: Int64) -> (sample: Sample?, correction: AudioGrid.Correction?) {
    if unit.isMoved { grid.restart() }
    let place = grid.place(milliseconds: unit.time &- origin, duration: unit.duration)
    guard case .at(let time) = place else { return (nil, grid.correction) }
    return (
      Sample(track: .audio, decodeTime: time, duration: unit.duration, isSync: true, payload: unit.payload),
      grid.correction
    )
  }
}

internal import FMP4
internal import NIOCore

/// What the worker is to make of sound: how the source is coded, and how it shall be.
struct SoundConfiguration: Sendable, Hashable {
  /// Of sound.
  var codec: CodecID
  /// AudioSpecificConfig or OpusHead.
  var record: [UInt8]
  /// Of the source's times, ticks a second.
  var timescale: UInt32
  var coding: AudioCoding
  /// Hz of what is made: the timescale of its times.
  var sampleRate: UInt32
  /// One or two.
  var channels: UInt8
  /// Bits a second.
  var bitRate: UInt32

  /// Rates that both encoders and every player take.
  static let aacRates: Set<UInt32> = [32_000, 44_100, 48_000]

  func write(to out: inout ByteBuffer) {
    out.writeInteger(codec.workerNumber)
    out.writeInteger(timescale)
    out.writeInteger(UInt8(coding == .aac ? 1 : 2))
    out.writeInteger(sampleRate)
    out.writeInteger(channels)
    out.writeInteger(bitRate)
    out.writeBytes(record)
  }
}

extension SoundConfiguration {
  init(reading body: inout ByteBuffer) throws(TranscodeProtocolError) {
    guard let codec = CodecID(workerNumberIn: &body, of: .audio),
      let timescale: UInt32 = body.readInteger(), timescale > 0, timescale <= UInt32(Int32.max),
      let coding: UInt8 = body.readInteger(), (1...2).contains(coding), let rate: UInt32 = body.readInteger(),
      Self.aacRates.contains(rate), let channels: UInt8 = body.readInteger(), (1...2).contains(channels),
      let bitRate: UInt32 = body.readInteger(), bitRate <= UInt32(Int32.max),
      body.readableBytes <= TranscodeLimits.recordBytes
    else { throw TranscodeProtocolError(description: "a configuration of sound that makes no sense") }
    self.init(
      codec: codec, record: Array(body.readableBytesView), timescale: timescale, coding: coding == 1 ? .aac : .opus,
      sampleRate: rate, channels: channels, bitRate: bitRate)
  }

  /// What is to be made of a track; nil where nothing is.
  init?(source: TrackDescription, as sound: SoundSpecification) {
    guard sound.applies(to: source.codec), let audio = source.codec.audio, audio.channels > 0 else { return nil }
    (codec, record) = (source.codec.id, source.codec.record())
    timescale = source.timescale
    coding = sound.coding
    // Opus knows no other (RFC 7845 §5.1); of AAC, too, it is what every player takes.
    sampleRate = sound.coding == .aac && Self.aacRates.contains(audio.sampleRate) ? audio.sampleRate : 48_000
    channels = audio.channels == 1 ? 1 : 2
    bitRate = UInt32(clamping: sound.bitRate)
  }
}

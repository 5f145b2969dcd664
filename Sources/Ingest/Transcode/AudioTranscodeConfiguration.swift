internal import FMP4
internal import LibAV
internal import NIOCore

/// Worker configuration for audio: coding of the source and of the output.
struct AudioTranscodeConfiguration: Sendable, Hashable {
  /// An audio codec.
  var codec: CodecID
  /// The codec's record, such as an AudioSpecificConfig or OpusHead.
  var record: [UInt8]
  /// Timescale of the source's times, in ticks per second.
  var timescale: UInt32
  var coding: CodecID
  /// Output rate in Hz; also the timescale of the output's times.
  var sampleRate: UInt32
  /// 1 or 2.
  var channels: UInt8
  /// Bits per second.
  var bitRate: UInt32

  func write(to out: inout ByteBuffer) {
    out.writeInteger(codec.workerNumber)
    out.writeInteger(timescale)
    out.writeInteger(coding.workerNumber)
    out.writeInteger(sampleRate)
    out.writeInteger(channels)
    out.writeInteger(bitRate)
    out.writeBytes(record)
  }
}

extension AudioTranscodeConfiguration {
  init(reading body: inout ByteBuffer) throws(TranscodeProtocolError) {
    guard let codec = CodecID(workerNumberIn: &body, of: .audio),
      let timescale: UInt32 = body.readInteger(), timescale > 0, timescale <= UInt32(Int32.max),
      let coding = CodecID(workerNumberIn: &body, of: .audio), let rate: UInt32 = body.readInteger(),
      AudioEncoding.all[coding]?.rates.contains(rate) == true, let channels: UInt8 = body.readInteger(),
      (1...2).contains(channels),
      let bitRate: UInt32 = body.readInteger(), bitRate <= UInt32(Int32.max),
      body.readableBytes <= TranscodeLimits.recordBytes
    else { throw TranscodeProtocolError(description: "an invalid audio configuration") }
    self.init(
      codec: codec, record: Array(body.readableBytesView), timescale: timescale, coding: coding,
      sampleRate: rate, channels: channels, bitRate: bitRate)
  }

  /// The configuration for a track. Nil if the track is not transcoded.
  init?(source: TrackDescription, as audio: AudioSpecification) {
    guard audio.applies(to: source.codec), let given = source.codec.audio, given.channels > 0,
      let encoding = AudioEncoding.all[audio.coding]
    else { return nil }
    (codec, record) = (source.codec.id, source.codec.record())
    timescale = source.timescale
    coding = audio.coding
    sampleRate = encoding.rates.contains(given.sampleRate) ? given.sampleRate : 48_000
    channels = given.channels == 1 ? 1 : 2
    bitRate = UInt32(clamping: audio.bitRate(channels: given.channels))
  }
}

internal import CLibAV
internal import FMP4
internal import Glibc
internal import LibAV
internal import NIOCore

/// Decodes a source's audio and encodes it again, with every sample at the same time. Priming of either codec shifts
/// nothing. A gap in the source becomes silence of the same length, and so does audio that cannot be decoded. Used on
/// one thread.
final class AudioTranscoder {
  /// Takes an audio frame: its time in output samples, and its bytes.
  typealias Receiver = (_ time: Int64, _ payload: ByteBuffer) -> Void

  private let configuration: AudioTranscodeConfiguration
  private let decoder: PacketDecoder
  private let frame: VideoFrame
  private var encoder: AudioEncoder
  private var converter: AudioConverter?
  /// Time of the next source sample, in samples at the decoder's rate. Nil before the first.
  private var expected: Int64?
  /// Time of the first sample that waits for its frame, in output samples.
  private var time: Int64 = 0
  private var left: [Float] = []
  private var right: [Float] = []

  /// A deviation above a hundredth of a second is not rounding. Missing samples become silence; duplicate samples are
  /// dropped.
  private static let toleranceDivisor = 100
  /// Longest gap in seconds that is bridged with silence. After a longer one, encoding starts anew.
  private static let longestBridge = 2

  init(_ configuration: AudioTranscodeConfiguration) throws {
    self.configuration = configuration
    encoder = try Self.makeEncoder(configuration)
    frame = try VideoFrame()
    decoder = try PacketDecoder(
      configuration.codec, record: configuration.record, timescale: configuration.timescale)
  }

  /// AudioSpecificConfig or OpusHead of the output.
  var record: [UInt8] { encoder.codec.record() }

  private static func makeEncoder(_ configuration: AudioTranscodeConfiguration) throws -> AudioEncoder {
    try AudioEncoder(
      configuration.coding, sampleRate: Int(configuration.sampleRate), bitRate: Int(configuration.bitRate),
      channels: Int(configuration.channels))
  }

  /// Takes the source's next frame and outputs complete frames. A frame that cannot be decoded is skipped. Throws if
  /// transcoding cannot continue.
  func transcode(_ audio: TranscodeRequest.SourceFrame, _ receive: Receiver) throws {
    _ = try decoder.send(audio)
    try collect(receive)
  }

  /// Outputs everything that is inside. The next frame starts anew.
  func drain(_ receive: Receiver) throws {
    _ = decoder.sendEnd()
    try collect(receive)
    decoder.flush()
    try restart(receive)
  }

  private func restart(_ receive: Receiver) throws {
    guard expected != nil else { return }
    if let converter { append(try converter.finish()) }
    if !left.isEmpty {
      let missing = [Float](repeating: 0, count: max(0, encoder.samplesPerFrame - left.count))
      append((missing, missing))
    }
    try encode(receive)
    try encoder.finish(receive)
    encoder = try Self.makeEncoder(configuration)
    converter = nil
    expected = nil
    (left, right) = ([], [])
  }

  private func collect(_ receive: Receiver) throws {
    while true {
      let code = decoder.receive(frame.frame)
      // No frame yet, the end, or bytes that are not audio.
      guard code >= 0 else { return }
      defer { av_frame_unref(frame.frame) }
      try place(frame.frame, receive)
    }
  }

  /// Places decoded samples at their time.
  private func place(_ frame: UnsafeMutablePointer<AVFrame>, _ receive: Receiver) throws {
    let rate = Int(frame.pointee.sample_rate)
    let count = Int(frame.pointee.nb_samples)
    guard rate > 0, count > 0 else { return }
    if let converter, !converter.takes(frame) { try restart(receive) }
    let stated = MediaTime(ticks: frame.pointee.pts, timescale: configuration.timescale)
    let start = frame.pointee.pts == weir_no_time ? expected ?? 0 : stated.rescaled(to: UInt32(clamping: rate))
    if let expected, start &- expected > Int64(rate * Self.longestBridge) { try restart(receive) }
    let converter = try self.converter ?? AudioConverter(frame, to: configuration)
    self.converter = converter
    var next = expected ?? start
    if expected == nil {
      time = MediaTime(ticks: start, timescale: UInt32(clamping: rate)).rescaled(to: configuration.sampleRate)
    }
    let tolerance = Int64(rate / Self.toleranceDivisor)
    var skipped = 0
    if start &- next > tolerance {
      append(try converter.silence(Int(start &- next)))
      next = start
    } else if next &- start > tolerance {
      skipped = Int(min(next &- start, Int64(count)))
    }
    append(try converter.convert(frame, skipping: skipped))
    expected = next &+ Int64(count - skipped)
    try encode(receive)
  }

  private func append(_ samples: (left: [Float], right: [Float])) {
    left += samples.left
    right += samples.right
  }

  private func encode(_ receive: Receiver) throws {
    let count = encoder.samplesPerFrame
    while left.count >= count {
      try encoder.encode(left: Array(left[..<count]), right: Array(right[..<count]), at: time, receive)
      left.removeFirst(count)
      right.removeFirst(count)
      time &+= Int64(count)
    }
  }
}

internal import CLibAV
internal import FMP4
internal import Glibc
internal import NIOCore

/// Decodes a source's audio and codes it anew, sample for sample at the same time: priming of either codec moves nothing,
/// a hole in the source is silence of the same length, and what cannot be decoded is such a hole. It lives on one thread.
final class AudioTranscoder {
  /// A frame: its time in samples of what is made, and its bytes.
  typealias Receiver = (_ time: Int64, _ payload: ByteBuffer) -> Void

  private let configuration: AudioTranscodeConfiguration
  private let decoder: PacketDecoder
  private let frame: VideoFrame
  private var encoder: AudioEncoder
  private var converter: AudioConverter?
  /// Where the next sample of the source belongs, in samples of the decoder's rate; nil before the first.
  private var expected: Int64?
  /// Of the first sample that waits for its frame.
  private var time: Int64 = 0
  private var left: [Float] = []
  private var right: [Float] = []

  /// Times that are this much off (a hundredth of a second) are no rounding: what is missing is silence, what is there
  /// twice is left out.
  private static let toleranceDivisor = 100
  /// A longer hole, in seconds, is a new beginning.
  private static let longestBridge = 2

  init(_ configuration: AudioTranscodeConfiguration) throws {
    self.configuration = configuration
    encoder = try Self.makeEncoder(configuration)
    frame = try VideoFrame()
    decoder = try PacketDecoder(
      configuration.codec, record: configuration.record, timescale: configuration.timescale)
  }

  /// AudioSpecificConfig or OpusHead of what is made.
  var record: [UInt8] { encoder.codec.record() }

  private static func makeEncoder(_ configuration: AudioTranscodeConfiguration) throws -> AudioEncoder {
    try AudioEncoder(
      configuration.coding, sampleRate: Int(configuration.sampleRate), bitRate: Int(configuration.bitRate),
      channels: Int(configuration.channels))
  }

  /// Takes the source's next frame and gives out what is complete. What cannot be decoded is missing, and nothing else is;
  /// throws where nothing can be made any more.
  func transcode(_ audio: TranscodeRequest.SourcePicture, _ receive: Receiver) throws {
    _ = try decoder.send(audio)
    try collect(receive)
  }

  /// Gives out everything that is inside; what follows begins anew.
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
      // Nothing yet, nothing more, or bytes that are no audio.
      guard code >= 0 else { return }
      defer { av_frame_unref(frame.frame) }
      try place(frame.frame, receive)
    }
  }

  /// Puts decoded samples where they belong.
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

internal import CLibAV
internal import Glibc
internal import LibAV

/// Resamples decoded audio to the output's rate and channels. The first input sample is the first output sample.
final class AudioConverter {
  private let rate: Int32
  private let format: Int32
  private let sourceChannels: Int32
  private let isMono: Bool
  private var resampler: OpaquePointer?

  init(_ frame: UnsafeMutablePointer<AVFrame>, to configuration: AudioTranscodeConfiguration) throws(LibAVError) {
    rate = frame.pointee.sample_rate
    format = frame.pointee.format
    sourceChannels = frame.pointee.ch_layout.nb_channels
    isMono = configuration.channels == 1
    var output = AVChannelLayout()
    av_channel_layout_default(&output, Int32(configuration.channels))
    try LibAVError.check(
      swr_alloc_set_opts2(
        &resampler, &output, AV_SAMPLE_FMT_FLTP, Int32(clamping: configuration.sampleRate), &frame.pointee.ch_layout,
        AVSampleFormat(rawValue: format), rate, 0, nil), "convert audio")
    try LibAVError.check(swr_init(resampler), "convert audio")
  }

  deinit { swr_free(&resampler) }

  /// Whether the frame has the same audio format as before.
  func takes(_ frame: UnsafeMutablePointer<AVFrame>) -> Bool {
    frame.pointee.sample_rate == rate && frame.pointee.format == format
      && frame.pointee.ch_layout.nb_channels == sourceChannels
  }

  /// Converts a frame and returns the samples that are ready. With one channel, the right one equals the left.
  func convert(
    _ frame: UnsafeMutablePointer<AVFrame>, skipping skipped: Int
  ) throws(LibAVError) -> (left: [Float], right: [Float]) {
    let count = Int(frame.pointee.nb_samples) - skipped
    guard count > 0 else { return ([], []) }
    let sampleFormat = AVSampleFormat(rawValue: format)
    let isPlanar = av_sample_fmt_is_planar(sampleFormat) != 0
    let step = Int(av_get_bytes_per_sample(sampleFormat)) * (isPlanar ? 1 : Int(sourceChannels))
    var planes: [UnsafePointer<UInt8>?] = []
    for index in 0..<(isPlanar ? Int(sourceChannels) : 1) {
      planes.append(frame.pointee.extended_data[index].map { UnsafePointer($0 + skipped * step) })
    }
    return try run(&planes, count)
  }

  /// Converts silence of `count` source samples.
  func silence(_ count: Int) throws(LibAVError) -> (left: [Float], right: [Float]) {
    let sampleFormat = AVSampleFormat(rawValue: format)
    var data: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?
    try LibAVError.check(
      av_samples_alloc_array_and_samples(&data, nil, sourceChannels, Int32(clamping: count), sampleFormat, 0),
      "hold silence")
    defer {
      if let data {
        av_freep(data)
        free(data)
      }
    }
    av_samples_set_silence(data, 0, Int32(clamping: count), sourceChannels, sampleFormat)
    let isPlanar = av_sample_fmt_is_planar(sampleFormat) != 0
    var planes: [UnsafePointer<UInt8>?] = (0..<(isPlanar ? Int(sourceChannels) : 1)).map { index in
      data?[index].map { UnsafePointer($0) }
    }
    return try run(&planes, count)
  }

  /// Returns the samples that are left inside.
  func finish() throws(LibAVError) -> (left: [Float], right: [Float]) {
    var nothing: [UnsafePointer<UInt8>?] = []
    return try run(&nothing, 0)
  }

  private func run(
    _ planes: inout [UnsafePointer<UInt8>?], _ count: Int
  ) throws(LibAVError) -> (left: [Float], right: [Float]) {
    let room = Int(swr_get_out_samples(resampler, Int32(clamping: count))) + 32
    var left = [Float](repeating: 0, count: room)
    var right = isMono ? [] : left
    let made = left.withUnsafeMutableBytes { left in
      right.withUnsafeMutableBytes { right in
        var output = [
          left.baseAddress?.assumingMemoryBound(to: UInt8.self), right.baseAddress?.assumingMemoryBound(to: UInt8.self),
        ]
        guard count > 0 else { return swr_convert(resampler, &output, Int32(clamping: room), nil, 0) }
        return swr_convert(resampler, &output, Int32(clamping: room), &planes, Int32(clamping: count))
      }
    }
    try LibAVError.check(made, "convert audio")
    left.removeLast(room - Int(made))
    if isMono { right = left } else { right.removeLast(room - Int(made)) }
    return (left, right)
  }
}

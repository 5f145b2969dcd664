import CLibAV
import FMP4
import IngestSupport
import LibAV
@testable import Local
import Testing

/// Events of the test source, and what an independent decoder sees and hears in them.
struct DecodedTestMedia {
  /// A decoded frame: presentation time in ticks of the video track, the number in its counter block, its flash.
  struct Frame {
    var time: Int64
    var number: UInt32
    var isFlashing: Bool
  }

  var samples: [Sample] = []
  var tracks: [TrackDescription] = []
  var anchor: WallClockAnchor?
  var frames: [Frame] = []
  /// Left channel, the first sample at `audioStart` ticks of the audio track.
  var audio: [Float] = []
  var audioStart: Int64 = 0

  /// Makes frames 0 ..< count and decodes them.
  init(_ settings: TestSourceSettings, count: Int64, wallStart: WallTime) throws {
    let media = try TestMedia(settings: settings, wallStart: wallStart)
    var events: [MediaEvent] = []
    for frame in 0..<count { try media.advance(to: frame) { events.append($0) } }
    try media.finish { events.append($0) }
    try self.init(events: events, width: settings.width)
  }

  init(events: [MediaEvent], width: Int) throws {
    for event in events {
      switch event {
      case .sample(let sample): samples.append(sample)
      case .tracks(let descriptions): tracks = descriptions
      case .clock(let anchor): self.anchor = anchor
      default: break
      }
    }
    for track in tracks {
      switch track.codec.configuration {
      case let configuration as H264.Configuration: try decodeFrames(configuration, width: width)
      case let configuration as AAC.Configuration: try decodeAudio(configuration)
      default: Issue.record("a track of \(track.codec)")
      }
    }
  }

  func samples(of track: TrackID) -> [Sample] { samples.filter { $0.track == track } }

  /// Seconds at which the flash begins, on the presentation timeline.
  func flashes(timescale: UInt32) -> [Double] {
    zip(frames, frames.dropFirst()).filter { !$0.isFlashing && $1.isFlashing }
      .map { Double($1.time) / Double(timescale) }
  }

  /// Seconds at which audio follows half a second of silence.
  func beeps(sampleRate: Int) -> [Double] {
    var result: [Double] = []
    var last = Int.min / 2
    for (index, value) in audio.enumerated() where abs(value) > 0.1 {
      if index - last > sampleRate / 2 { result.append(Double(audioStart + Int64(index)) / Double(sampleRate)) }
      last = index
    }
    return result
  }

  private mutating func decodeFrames(_ configuration: H264.Configuration, width: Int) throws {
    let decoder = try LibAVDecoder(AV_CODEC_ID_H264, extradata: configuration.record())
    var decoded: [Frame] = []
    let receive = { (time: Int64, frame: AVFrame) in
      let stride = Int(frame.linesize.0)
      let luma = LumaPlane(
        pixels: UnsafeMutableRawBufferPointer(start: frame.data.0, count: stride * Int(frame.height)),
        stride: stride, width: Int(frame.width), height: Int(frame.height))
      decoded.append(
        Frame(
          time: time, number: CounterBlock(frameWidth: width).read(from: luma),
          isFlashing: TestFrame.isFlashing(luma, frameWidth: width)))
    }
    for sample in samples(of: .video) {
      try decoder.decode((sample.decodeTime + Int64(sample.compositionOffset), sample.payload), receive)
    }
    try decoder.decode(nil, receive)
    frames = decoded
  }

  private mutating func decodeAudio(_ configuration: AAC.Configuration) throws {
    let decoder = try LibAVDecoder(AV_CODEC_ID_AAC, extradata: configuration.audioSpecificConfig)
    var decoded: [Float] = []
    let receive = { (time: Int64, frame: AVFrame) in
      guard let left = frame.extended_data?.pointee else { return }
      left.withMemoryRebound(to: Float.self, capacity: Int(frame.nb_samples)) {
        decoded += UnsafeBufferPointer(start: $0, count: Int(frame.nb_samples))
      }
    }
    for sample in samples(of: .audio) { try decoder.decode((sample.decodeTime, sample.payload), receive) }
    try decoder.decode(nil, receive)
    audio = decoded
    audioStart = samples(of: .audio).first?.decodeTime ?? 0
  }
}

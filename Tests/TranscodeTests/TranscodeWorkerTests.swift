import CLibAV
import FMP4
import IngestSupport
import LibAV
@testable import Local
import NIOCore
import Support
import Testing
@testable import Transcode

/// The worker with real bitstreams: what an independent decoder sees in its rungs.
@Suite struct TranscodeWorkerTests {
  private static let ladder = [
    RungSpecification(shortSide: 180, bitRate: 400_000), RungSpecification(shortSide: 120, bitRate: 200_000),
  ]

  private struct Source {
    var track: TrackDescription
    var frames: [TranscodeRequest.SourceFrame]
    var plan: TranscodePlan
  }

  private func source(bFrames: Int, count: Int64) throws -> Source {
    let settings = TestSourceSettings(
      width: 640, height: 360, keyFrameInterval: 20, bFrames: bFrames, videoBitRate: 800_000)
    let media = try TestMedia(settings: settings, wallStart: PatternClock.wallStart)
    var events: [MediaEvent] = []
    for frame in 0..<count { try media.advance(to: frame) { events.append($0) } }
    try media.finish { events.append($0) }
    var track: TrackDescription?
    var frames: [TranscodeRequest.SourceFrame] = []
    for event in events {
      switch event {
      case .tracks(let tracks): track = tracks.first { $0.kind == .video }
      case .sample(let sample) where sample.track == .video:
        frames.append(
          TranscodeRequest.SourceFrame(
            presentationTime: sample.decodeTime + Int64(sample.compositionOffset), decodeTime: sample.decodeTime,
            isSync: sample.isSync, lateness: 0, payload: sample.payload))
      default: break
      }
    }
    let video = try #require(track)
    return Source(
      track: video, frames: frames, plan: try #require(TranscodePlan(source: video, ladder: Self.ladder)))
  }

  private func frames(_ replies: [TranscodeReply], rung: UInt8) -> [TranscodeReply.RungFrame] {
    replies.compactMap { reply in
      if case .frame(let frame) = reply, frame.rung == rung { return frame }
      return nil
    }
  }

  @Test(arguments: [0, 2])
  func everyFrameComesOutOfEveryRungAndKeyFramesAreTheSources(bFrames: Int) async throws {
    let source = try source(bFrames: bFrames, count: 45)
    let worker = try WorkerThread()
    defer { worker.end() }
    let replies = try await worker.exchange(
      [source.plan.request] + source.frames.map { .frame($0) } + [.drain])
    let times = source.frames.map(\.presentationTime).sorted()
    let keys = source.frames.filter(\.isSync).map(\.presentationTime)
    for (rung, width) in [(UInt8(0), 320), (1, 214)] {
      let made = frames(replies, rung: rung)
      #expect(made.map(\.presentationTime) == times)
      #expect(made.filter(\.isSync).map(\.presentationTime) == keys)
      let record = try #require(
        replies.compactMap { if case .track(rung, let record) = $0 { record } else { nil } }.first)
      let track = try H264.Configuration(record: record)
      #expect(track.format.width == width)
      // Counters can be read where every block has whole samples.
      if width == 320 { #expect(try numbers(made, track, width: width) == Array(0..<45)) }
    }
    let taken = replies.reduce(0) { sum, reply in
      if case .consumed(let frames, let dropped) = reply { return sum + Int(frames) + 1000 * Int(dropped) }
      return sum
    }
    #expect(taken == 45, "all are taken in, none is left out")
  }

  private func numbers(
    _ frames: [TranscodeReply.RungFrame], _ track: H264.Configuration, width: Int
  ) throws -> [UInt32] {
    let decoder = try LibAVDecoder(AV_CODEC_ID_H264, extradata: track.record())
    var numbers: [UInt32] = []
    let receive = { (time: Int64, frame: AVFrame) in
      let stride = Int(frame.linesize.0)
      let luma = LumaPlane(
        pixels: UnsafeMutableRawBufferPointer(start: frame.data.0, count: stride * Int(frame.height)),
        stride: stride, width: Int(frame.width), height: Int(frame.height))
      numbers.append(CounterBlock(frameWidth: width).read(from: luma))
    }
    for frame in frames { try decoder.decode((frame.presentationTime, frame.payload), receive) }
    try decoder.decode(nil, receive)
    return numbers
  }

  @Test func whereItIsLateItLeavesOutFramesEvenlyAndNoKeyFrame() async throws {
    var source = try source(bFrames: 0, count: 41)
    for index in source.frames.indices { source.frames[index].lateness = 500 }
    let worker = try WorkerThread()
    defer { worker.end() }
    let replies = try await worker.exchange(
      [source.plan.request] + source.frames.map { .frame($0) } + [.drain])
    let made = frames(replies, rung: 0).map(\.presentationTime)
    let start = try #require(made.first)
    #expect(made.map { ($0 - start) / 1000 } == Array(stride(from: 0, through: 40, by: 2)))
    #expect(frames(replies, rung: 1).map(\.presentationTime) == made)
  }

  @Test func garbageCostsItsFramesAndNothingElse() async throws {
    var source = try source(bFrames: 0, count: 60)
    for index in 5..<20 {
      source.frames[index].payload = ByteBuffer(bytes: (0..<300).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ index) })
    }
    let worker = try WorkerThread()
    defer { worker.end() }
    let replies = try await worker.exchange(
      [source.plan.request] + source.frames.map { .frame($0) } + [.drain])
    let made = Set(frames(replies, rung: 0).map(\.presentationTime))
    #expect(made.isSuperset(of: source.frames[20...].map(\.presentationTime)), "from the next key frame on")
    #expect(replies.last == .drained)
  }

  @Test func aConfigurationThatNoDecoderTakesEndsItWithAReason() async throws {
    guard case .video(var configuration) = try source(bFrames: 0, count: 1).plan.work else { return }
    configuration.rungs[0].width = 0
    let worker = try WorkerThread()
    defer { worker.end() }
    let replies = try await worker.exchange([.configure(configuration), .drain])
    guard case .failed = replies.last else {
      Issue.record("it says \(String(describing: replies.last))")
      return
    }
  }
}

import CLibAV
import FMP4
import LibAV
import NIOCore
import Testing
@testable import Transcode

/// Audio through the worker, as an independent decoder hears it: what was at a time is there afterwards.
@Suite struct AudioTranscoderTests {
  private struct Kind: Sendable, CustomTestStringConvertible {
    var coding: CodecID
    var rate: Int
    var channels = 2
    var testDescription: String { "\(coding.rawValue), \(rate) Hz, \(channels) channels" }

    var other: CodecID { coding == .aac ? .opus : .aac }
    /// AAC is not made below 32 kHz.
    var outputRate: Int { other == .opus || rate < 32_000 ? 48_000 : rate }
  }

  private static let kinds = [
    Kind(coding: .aac, rate: 48_000), Kind(coding: .aac, rate: 44_100), Kind(coding: .opus, rate: 48_000),
    Kind(coding: .opus, rate: 48_000, channels: 1), Kind(coding: .alaw, rate: 8000, channels: 1),
    Kind(coding: .mulaw, rate: 16_000),
  ]

  /// Where the media begin, in seconds: nothing begins at 0 only.
  private static let start = 7

  /// Silence with a click of a hundredth of a second at each tenth but the whole seconds', for two seconds.
  private func source(_ kind: Kind) throws -> (plan: TranscodePlan, frames: [TranscodeRequest.SourceFrame]) {
    if kind.coding == .alaw || kind.coding == .mulaw { return try telephone(kind) }
    let encoder = try AudioEncoder(kind.coding, sampleRate: kind.rate, bitRate: 128_000, channels: kind.channels)
    let length = encoder.samplesPerFrame
    var frames: [TranscodeRequest.SourceFrame] = []
    func take(_ time: Int64, _ payload: ByteBuffer) {
      frames.append(
        TranscodeRequest.SourceFrame(
          presentationTime: time, decodeTime: time, isSync: true, lateness: 0, payload: payload))
    }
    for block in 0..<(2 * kind.rate / length) {
      let samples = (0..<length).map { Self.audio(at: block * length + $0, rate: kind.rate) }
      try encoder.encode(left: samples, right: samples, at: Int64(Self.start * kind.rate + block * length), take)
    }
    try encoder.finish(take)
    let track = TrackDescription(id: .audio, codec: encoder.codec, timescale: UInt32(kind.rate))
    return (try #require(TranscodePlan(source: track, aim: .audio(AudioSpecification(kind.other)))), frames)
  }

  /// The same in G.711, in frames of 20 ms.
  private func telephone(_ kind: Kind) throws -> (plan: TranscodePlan, frames: [TranscodeRequest.SourceFrame]) {
    let (low, silent, high): (UInt8, UInt8, UInt8) =
      kind.coding == .alaw ? (0x25, 0xD5, 0xA5) : (0x0F, 0xFF, 0x8F)
    let length = kind.rate / 50
    let frames = (0..<100).map { frame in
      let bytes = (0..<length).flatMap { index in
        let value = Self.audio(at: frame * length + index, rate: kind.rate)
        return [UInt8](repeating: value == 0 ? silent : value < 0 ? low : high, count: kind.channels)
      }
      let time = Int64(Self.start * kind.rate + frame * length)
      return TranscodeRequest.SourceFrame(
        presentationTime: time, decodeTime: time, isSync: true, lateness: 0, payload: ByteBuffer(bytes: bytes))
    }
    let record = G711.record(sampleRate: UInt32(kind.rate), channels: UInt8(kind.channels))
    let codec = try Codec(kind.coding, record: ByteBuffer(bytes: record))
    let track = TrackDescription(id: .audio, codec: codec, timescale: UInt32(kind.rate))
    return (try #require(TranscodePlan(source: track, aim: .audio(AudioSpecification(.aac)))), frames)
  }

  private static func audio(at index: Int, rate: Int) -> Float {
    let (tenth, rest) = (index * 10 / rate, index % (rate / 10))
    guard tenth % 10 != 0, rest < rate / 100 else { return 0 }
    return rest / 20 % 2 == 0 ? 0.5 : -0.5
  }

  /// Times in milliseconds at which it becomes loud.
  private func clicks(_ replies: [TranscodeReply], _ kind: Kind) throws -> (times: [Int64], clicks: [Double]) {
    var record: ByteBuffer?
    var frames: [TranscodeReply.RungFrame] = []
    for reply in replies {
      switch reply {
      case .track(_, let bytes): record = bytes
      case .frame(let frame): frames.append(frame)
      default: break
      }
    }
    let context = try DecoderContext.open(
      kind.other == .aac ? .aac : .opus, record: Array(try #require(record).readableBytesView),
      timescale: Int32(kind.outputRate))
    defer {
      var context: UnsafeMutablePointer<AVCodecContext>? = context
      avcodec_free_context(&context)
    }
    var found: [Double] = []
    var quietSince = Int64.min / 2
    for frame in frames {
      var packet = av_packet_alloc()
      defer { av_packet_free(&packet) }
      let bytes = Array(frame.payload.readableBytesView)
      let raw = try #require(packet)
      #expect(av_new_packet(raw, Int32(bytes.count)) == 0)
      raw.pointee.data.update(from: bytes, count: bytes.count)
      raw.pointee.pts = frame.presentationTime
      #expect(avcodec_send_packet(context, raw) == 0)
      let decoded = try VideoFrame()
      while avcodec_receive_frame(context, decoded.frame) >= 0 {
        let step =
          av_sample_fmt_is_planar(AVSampleFormat(rawValue: decoded.frame.pointee.format)) != 0 ? 1 : kind.channels
        let count = Int(decoded.frame.pointee.nb_samples)
        let time = decoded.frame.pointee.pts
        try #require(decoded.frame.pointee.data.0).withMemoryRebound(to: Float.self, capacity: count * step) {
          samples in
          for index in 0..<count where abs(samples[index * step]) > 0.25 {
            let at = time + Int64(index)
            if at - quietSince > Int64(kind.outputRate / 20) {
              found.append(Double(at) * 1000 / Double(kind.outputRate))
            }
            quietSince = at
          }
        }
        av_frame_unref(decoded.frame)
      }
    }
    return (frames.map(\.presentationTime), found)
  }

  private static let wanted: [Double] = (0..<20).filter { $0 % 10 != 0 }.map { Double(start * 1000 + $0 * 100) }

  @Test(arguments: kinds)
  private func whatIsHeardAtATimeIsHeardThereAfterwards(_ kind: Kind) async throws {
    let (plan, frames) = try source(kind)
    let worker = try WorkerThread()
    defer { worker.end() }
    let replies = try await worker.exchange([plan.request] + frames.map { .frame($0) } + [.drain])
    let (times, clicks) = try clicks(replies, kind)
    #expect(clicks.count == Self.wanted.count)
    for (heard, wanted) in zip(clicks, Self.wanted) { #expect(abs(heard - wanted) < 1.5) }
    // One after the other, without a hole.
    let length = kind.other == .aac ? Int64(1024) : 960
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == length })
    let begin = try #require(times.first)
    #expect(abs(begin - Int64(Self.start * kind.outputRate)) < 2 * length)
    let consumed = replies.reduce(0) { if case .consumed(let count, _) = $1 { $0 + Int(count) } else { $0 } }
    #expect(consumed == frames.count)
  }

  @Test func aHoleInTheSourceIsSilenceAndGarbageIsAHole() async throws {
    let kind = Kind(coding: .opus, rate: 48_000)
    var (plan, frames) = try source(kind)
    // Two tenths are missing, and a third one is broken.
    for index in 45..<50 { frames[index].payload = ByteBuffer(bytes: [0xff, 0xff, 1, 2, 3]) }
    frames.removeSubrange(25..<35)
    let worker = try WorkerThread()
    defer { worker.end() }
    let replies = try await worker.exchange([plan.request] + frames.map { .frame($0) } + [.drain])
    let (times, clicks) = try clicks(replies, kind)
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == 1024 })
    let late = Self.wanted.filter { $0 > Double(Self.start * 1000 + 1050) }
    for (heard, wanted) in zip(clicks.suffix(late.count), late) { #expect(abs(heard - wanted) < 1.5) }
  }

  @Test func afterADrainItBeginsAtAnotherTime() async throws {
    let kind = Kind(coding: .aac, rate: 48_000)
    let (plan, frames) = try source(kind)
    let later = frames.map { frame in
      var frame = frame
      frame.presentationTime += 48_000 * 100
      frame.decodeTime += 48_000 * 100
      return frame
    }
    let worker = try WorkerThread()
    defer { worker.end() }
    let replies = try await worker.exchange(
      [plan.request] + frames.map { .frame($0) } + [.drain] + later.map { .frame($0) } + [.drain])
    let (_, clicks) = try clicks(replies, kind)
    let wanted = Self.wanted + Self.wanted.map { $0 + 100_000 }
    #expect(clicks.count == wanted.count)
    for (heard, wanted) in zip(clicks, wanted) { #expect(abs(heard - wanted) < 1.5) }
  }

  @Test func `Frames follow one another without a gap, and a drain gives all that is left`() throws {
    let (plan, frames) = try source(Kind(coding: .opus, rate: 48_000))
    guard case .audio(let configuration) = plan.work else { return }
    let transcoder = try AudioTranscoder(configuration)
    #expect(try AAC.Configuration(record: ByteBuffer(bytes: transcoder.record)).sampleRate == 48_000)
    var times: [Int64] = []
    for frame in frames {
      try transcoder.transcode(frame) { time, payload in
        times.append(time)
        #expect(payload.readableBytes > 0)
      }
    }
    let before = times.count
    try transcoder.drain { time, _ in times.append(time) }
    let (begin, end) = (frames[0].presentationTime, (frames.last?.presentationTime ?? 0) + 960)
    #expect(times.first == begin && before > 80 && times.count > before)
    #expect(zip(times, times.dropFirst()).allSatisfy { $1 - $0 == 1024 })
    #expect(times.last.map { (end - 1024...end).contains($0) } == true)
    try transcoder.drain { _, _ in Issue.record("nothing was left") }
  }

  /// What is longer is no hole to be filled with silence.
  @Test(arguments: [(1900, true), (2100, false)] as [(Int64, Bool)])
  func `A hole of more than two seconds is a new beginning`(_ milliseconds: Int64, _ isFilled: Bool) throws {
    var (plan, frames) = try source(Kind(coding: .opus, rate: 48_000))
    guard case .audio(let configuration) = plan.work else { return }
    for index in 50..<frames.count { frames[index].presentationTime += milliseconds * 48 }
    let transcoder = try AudioTranscoder(configuration)
    var times: [Int64] = []
    for frame in frames { try transcoder.transcode(frame) { time, _ in times.append(time) } }
    let steps = Set(zip(times, times.dropFirst()).map { $1 - $0 })
    #expect((steps == [1024]) == isFilled, "\(steps)")
    if !isFilled { #expect(times.contains(frames[50].presentationTime), "it begins at its own time") }
  }

  @Test func audioThatIsCodedSoAlreadyIsPassedThrough() throws {
    let aac = try AudioEncoder(.aac, sampleRate: 48_000, bitRate: 96_000)
    let track = TrackDescription(id: .audio, codec: aac.codec, timescale: 48_000)
    #expect(TranscodePlan(source: track, aim: .audio(AudioSpecification(.aac))) == nil)
    #expect(TranscodePlan(source: track, aim: .audio(AudioSpecification(.opus)))?.numbers == [0])
  }

  @Test func audioThatIsNotDueIsRefused() throws {
    let opus = try AudioEncoder(.opus, sampleRate: 48_000, bitRate: 96_000)
    let track = TrackDescription(id: .audio, codec: opus.codec, timescale: 48_000)
    let plan = try #require(TranscodePlan(source: track, aim: .audio(AudioSpecification(.aac))))
    let aac = try AudioEncoder(.aac, sampleRate: 48_000, bitRate: 96_000)
    func frame(_ time: Int64) -> TranscodeReply {
      .frame(
        TranscodeReply.RungFrame(rung: 0, presentationTime: time, isSync: true, payload: ByteBuffer(bytes: [1])))
    }
    var begun = TranscodeConversation()
    var events: [TranscodeEvent] = []
    begun.sent(plan)
    begun.sent(
      TranscodeRequest.SourceFrame(
        presentationTime: 48_000, decodeTime: 48_000, isSync: true, lateness: 0, payload: ByteBuffer()))
    let record = ByteBuffer(bytes: aac.codec.record())
    _ = try begun.take(.track(rung: 0, record: record), &events)
    _ = try begun.take(frame(10_240), &events)
    for (time, isDue) in [(Int64(11_264), true), (11_263, false), (55_200, true), (55_201, false)] {
      var conversation = begun
      if isDue {
        _ = try conversation.take(frame(time), &events)
      } else {
        #expect(throws: TranscodeProtocolError.self) { _ = try conversation.take(frame(time), &events) }
      }
    }
  }
}

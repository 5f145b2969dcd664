internal import FMP4
internal import NIOCore

/// The requests sent to one worker, and the check of its replies. The worker is not trusted: each reply must follow
/// from a request.
struct TranscodeConversation: Sendable {
  private struct Rung: Sendable {
    let number: Int
    let track: TrackDescription
    var lastTime = Int64.min
    var frames = 0
    /// A drain happened since: an audio frame may begin before the last one's end.
    var isBroken = true
  }

  /// The frames sent for one configuration.
  private struct Stretch: Sendable {
    let plan: TranscodePlan
    var newestTime = Int64.min
    /// Length of the longest audio frame, in ticks.
    var longest: UInt32 = 0
    var frames = 0
  }

  /// Once `hasBegun` is set, the first one is the one that the worker is answering.
  private var stretches: [Stretch] = []
  private var hasBegun = false
  private var rungs: [Int: Rung] = [:]
  /// By rung numbers of the ladder: a new configuration gives no new budget.
  private var budgets: [Int: RungBudget] = [:]
  /// Most bytes of a valid reply.
  private(set) var longestReply = TranscodeLimits.recordBytes + 2
  /// Presentation times of the frames that the worker has not consumed.
  private var waiting: [Int64] = []
  private var drains: [MediaTime] = []
  /// Error text that the worker sent before its end.
  private(set) var farewell: String?

  /// Number of frames that the worker has not consumed.
  var inFlight: Int { waiting.count }

  /// Whether more input can be sent before the worker replies.
  var takesMore: Bool {
    let questions = drains.count + stretches.count - (hasBegun ? 1 : 0)
    return inFlight < TranscodeLimits.framesInFlight && questions < TranscodeLimits.questions
  }

  /// Whether no reply is outstanding.
  var isSilent: Bool { waiting.isEmpty && drains.isEmpty && (stretches.isEmpty || (hasBegun && stretches.count == 1)) }

  private var current: Stretch? { hasBegun ? stretches.first : nil }

  /// If the worker is lost, no frames before this presentation time follow.
  var lost: MediaTime? {
    let newest = stretches.last { $0.newestTime != .min }
    return newest.map { MediaTime(ticks: $0.newestTime &+ 1, timescale: $0.plan.source.timescale) }
  }

  mutating func sent(_ plan: TranscodePlan) {
    stretches.append(Stretch(plan: plan))
    // The largest frame, after its type, rung, time and kind.
    for index in plan.numbers.indices {
      longestReply = max(longestReply, (plan.budget(ofRung: index)?.capacity ?? 0) + 11)
    }
  }

  mutating func sent(_ frame: TranscodeRequest.SourceFrame) {
    waiting.append(frame.presentationTime)
    guard let last = stretches.indices.last else { return }
    stretches[last].frames += 1
    if case .audio = stretches[last].plan.work {
      let length = stretches[last].plan.source.codec.duration(of: frame.payload) ?? 0
      stretches[last].longest = max(stretches[last].longest, length)
    }
    stretches[last].newestTime = max(stretches[last].newestTime, frame.presentationTime)
  }

  mutating func sentDrain(nothingBefore time: MediaTime) { drains.append(time) }

  /// Checks a reply and adds its events. Returns the number of frames that the worker dropped.
  mutating func take(
    _ reply: TranscodeReply, _ events: inout [TranscodeEvent]
  ) throws(TranscodeProtocolError) -> Int {
    switch reply {
    case .track(let rung, let record): events.append(try track(Int(rung), record))
    case .frame(let frame): events.append(try self.frame(frame))
    case .consumed(let frames, let dropped):
      guard frames <= waiting.count, dropped <= UInt32(Int32.max) else {
        throw TranscodeProtocolError(description: "\(frames) frames consumed, but \(waiting.count) were sent")
      }
      let newest = waiting.prefix(Int(frames)).max()
      waiting.removeFirst(Int(frames))
      if let newest, let timescale = current?.plan.source.timescale {
        let delay = MediaTime(milliseconds: TranscodeLimits.longestDelay)
        events.append(.lost(before: MediaTime(ticks: newest, timescale: timescale) - delay))
      }
      return Int(dropped)
    case .drained:
      guard !drains.isEmpty else { throw TranscodeProtocolError(description: "a reply without a request") }
      events.append(.lost(before: drains.removeFirst()))
      for index in rungs.keys { rungs[index]?.isBroken = true }
    case .failed(let text):
      farewell = text
      throw TranscodeProtocolError(description: text)
    case .still: throw TranscodeProtocolError(description: "a reply without a request")
    }
    return 0
  }

  private mutating func track(
    _ index: Int, _ record: ByteBuffer
  ) throws(TranscodeProtocolError) -> TranscodeEvent {
    if index == 0 {
      guard stretches.count > (hasBegun ? 1 : 0) else {
        throw TranscodeProtocolError(description: "a track that was not requested")
      }
      if hasBegun { stretches.removeFirst() }
      hasBegun = true
      rungs = [:]
    }
    guard let plan = current?.plan, plan.numbers.indices.contains(index), rungs[index] == nil else {
      throw TranscodeProtocolError(description: "an unexpected track of rung \(index)")
    }
    let track: TrackDescription
    do {
      track = try plan.track(ofRung: index, record: record)
    } catch {
      throw TranscodeProtocolError(description: "\(error)")
    }
    rungs[index] = Rung(number: plan.numbers[index], track: track)
    var budget = plan.budget(ofRung: index)
    if let before = budgets[plan.numbers[index]] { budget?.goOn(after: before) }
    budgets[plan.numbers[index]] = budget
    return .track(rung: plan.numbers[index], track)
  }

  private mutating func frame(
    _ frame: TranscodeReply.RungFrame
  ) throws(TranscodeProtocolError) -> TranscodeEvent {
    guard var rung = rungs[Int(frame.rung)] else {
      throw TranscodeProtocolError(description: "a frame of the unknown rung \(frame.rung)")
    }
    rung.frames += 1
    guard let current, frame.presentationTime > rung.lastTime, isDue(frame, of: rung, current) else {
      throw TranscodeProtocolError(description: "a frame with the unexpected time \(frame.presentationTime)")
    }
    let (passed, overflow) = frame.presentationTime.subtractingReportingOverflow(rung.lastTime)
    let size = frame.payload.readableBytes
    guard budgets[rung.number]?.take(size, after: overflow ? .max : passed) == true else {
      throw TranscodeProtocolError(
        description: "a frame of \(size) bytes exceeds the budget of rung \(frame.rung)")
    }
    rung.isBroken = false
    rung.lastTime = frame.presentationTime
    rungs[Int(frame.rung)] = rung
    return .frame(
      rung: rung.number,
      Sample(
        track: rung.track.id, decodeTime: frame.presentationTime, isSync: frame.isSync, payload: frame.payload))
  }

  /// Whether the frame follows from the input: no more frames than the source has, and audio frames at plausible times.
  private func isDue(_ frame: TranscodeReply.RungFrame, of rung: Rung, _ stretch: Stretch) -> Bool {
    switch stretch.plan.work {
    case .video: return frame.presentationTime <= stretch.newestTime && rung.frames <= stretch.frames
    case .audio:
      let newest = MediaTime(ticks: stretch.newestTime, timescale: stretch.plan.timescale)
      // A frame of Opus may last 120 ms, one of G.711 longer.
      let longest = MediaTime(ticks: Int64(stretch.longest), timescale: stretch.plan.timescale)
      let time = MediaTime(ticks: frame.presentationTime, timescale: rung.track.timescale)
      let length = Int64(rung.track.sampleDuration ?? 1)
      return time <= newest + max(longest, MediaTime(milliseconds: 120)) + MediaTime(milliseconds: 30)
        && (rung.isBroken || frame.presentationTime &- rung.lastTime >= length)
    }
  }
}

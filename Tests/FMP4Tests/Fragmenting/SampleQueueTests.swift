@testable import FMP4
import NIOCore
import Support
import Testing

@Suite("Samples on their way into fragments")
struct SampleQueueTests {
  private func queue(_ track: TrackDescription? = nil) throws -> SampleQueue {
    SampleQueue(track: try track ?? SyntheticMedia.video())
  }

  /// A queue with frames of 1000 ticks whose durations are stated.
  private func steady(_ count: Int) throws -> SampleQueue {
    var queue = try queue()
    for index in 0..<count { _ = queue.append(SyntheticMedia.frame(index, isSteady: true)) }
    return queue
  }

  private func sample(at time: Int64, offset: Int32 = 0, duration: UInt32? = nil) -> Sample {
    Sample(
      track: .video, decodeTime: time, compositionOffset: offset, duration: duration, isSync: false,
      payload: ByteBuffer(repeating: 1, count: 10))
  }

  @Test func `A sample without a duration waits until the next one tells it`() throws {
    var queue = try queue()
    #expect(queue.isEmpty && queue.reach == nil && queue.newest == nil)
    #expect(queue.append(SyntheticMedia.frame(0)) == 0)
    #expect(queue.waiting?.decodeTime == 0 && queue.ready.isEmpty && queue.reach == nil && !queue.isEmpty)
    #expect(try #require(queue.newest) == (0, true))
    #expect(queue.append(SyntheticMedia.frame(1)) == 1000)
    #expect(queue.ready.map(\.duration) == [1000] && queue.reach == 1000 && queue.readyBytes == 100)
    #expect(try #require(queue.newest) == (1000, false))
  }

  @Test func `A sample that states its duration is ready at once`() throws {
    let queue = try steady(2)
    #expect(queue.waiting == nil && queue.ready.map(\.duration) == [1000, 1000])
    #expect(queue.reach == 2000 && queue.lastDuration == 1000 && queue.readyBytes == 200)
    // The next frame may still move its end.
    #expect(try #require(queue.newest) == (1000, false))
    var audio = try self.queue(SyntheticMedia.audio())
    _ = audio.append(SyntheticMedia.audio(0))
    #expect(audio.newest == nil, "a frame of audio is as long as it says")
  }

  @Test func `A sample after a pause keeps its time, and the one before it its duration`() throws {
    let limit = MediaTime(milliseconds: 2000)
    var taken = try steady(3)
    _ = taken.take()
    let back: Int64 = 60 * 30_000
    taken.endBeforePause(until: back, longerThan: limit)
    #expect(taken.append(sample(at: back, offset: 500, duration: 1000)) == back)
    let rest = taken.take()
    let run = try #require(rest?.run)
    #expect(run.baseDecodeTime == back && run.samples.map(\.compositionOffset) == [500] && run.duration == 1000)
    var waits = try queue()
    _ = waits.append(sample(at: 0))
    _ = waits.append(sample(at: 1000))
    waits.endBeforePause(until: back, longerThan: limit)
    #expect(waits.ready.map(\.duration) == [1000, 1000] && waits.reach == 2000)
    // A usual distance is none.
    var steady = try steady(2)
    steady.endBeforePause(until: 2000, longerThan: limit)
    #expect(try #require(steady.newest) == (1000, false))
  }

  @Test func `A sample that another track replaces ends where that begins`() throws {
    var queue = try queue()
    for time in [0, 2000, 4000] as [Int64] { _ = queue.append(sample(at: time)) }
    queue.resolveWaitingWithoutSuccessor(before: 5000)
    #expect(queue.ready.map(\.duration) == [2000, 2000, 1000])
  }

  @Test func `A decode time that does not rise is lifted and the presentation stays`() throws {
    var queue = try queue()
    _ = queue.append(sample(at: 1000, offset: 500))
    #expect(queue.append(sample(at: 1000, offset: 500)) == 1001)
    #expect(queue.waiting?.presentationTime == 1500)
    #expect(queue.append(sample(at: 0, offset: 4000)) == 1002)
    #expect(queue.waiting?.presentationTime == 4000)
    #expect(queue.ready.map(\.duration) == [1, 1])
  }

  @Test func `A composition offset that 32 bits do not hold is cut, not wrapped`() throws {
    var queue = try queue()
    _ = queue.append(sample(at: 5_000_000_000))
    #expect(queue.append(sample(at: 0)) == 5_000_000_001)
    #expect(queue.waiting?.compositionOffset == .min)
    // And the longest hole is the longest duration.
    #expect(queue.append(sample(at: 50_000_000_000)) == 50_000_000_000)
    #expect(queue.ready.last?.duration == .max)
  }

  @Test func `A hole lengthens the sample before it`() throws {
    var video = try steady(1)
    #expect(video.append(SyntheticMedia.frame(5, isSteady: true)) == 5000)
    #expect(video.ready.map(\.duration) == [5000, 1000] && video.reach == 6000)
    var audio = try queue(SyntheticMedia.audio())
    for index in [0, 3] { _ = audio.append(SyntheticMedia.audio(index)) }
    #expect(audio.ready.map(\.duration) == [3072, 1024] && audio.reach == 4096)
  }

  @Test func `A sample later than the predicted end of a closed fragment is laid at that end`() throws {
    var queue = try steady(1)
    _ = queue.take()
    #expect(queue.append(sample(at: 1500, offset: 100, duration: 1000)) == 1000)
    #expect(queue.ready.map(\.compositionOffset) == [600], "it is still shown at 1600")
    #expect(queue.readyStart == 1000 && queue.reach == 2000)
  }

  @Test func `The last sample gets the likeliest duration`() throws {
    var stated = try queue(SyntheticMedia.video(frameDuration: 1001))
    _ = stated.append(sample(at: 0))
    stated.resolveWaitingWithoutSuccessor()
    #expect(stated.ready.map(\.duration) == [1001])
    var unknown = try queue(SyntheticMedia.video(timescale: 90_000, frameDuration: nil))
    _ = unknown.append(sample(at: 0))
    unknown.resolveWaitingWithoutSuccessor()
    #expect(unknown.ready.map(\.duration) == [3000], "a thirtieth of a second")
    _ = unknown.append(sample(at: 3000))
    _ = unknown.append(sample(at: 4500))
    unknown.resolveWaitingWithoutSuccessor()
    #expect(unknown.ready.map(\.duration) == [3000, 1500, 1500], "as the one before")
    unknown.resolveWaitingWithoutSuccessor()
    #expect(unknown.ready.count == 3)
  }

  @Test func `A waiting sample never gets a duration of 0`() throws {
    var queue = try queue()
    _ = queue.append(sample(at: 700))
    queue.resolveWaiting(until: 700)
    #expect(queue.ready.map(\.duration) == [1] && queue.reach == 701)
  }

  @Test func `Samples are taken that begin before a boundary`() throws {
    for (boundary, count) in [(0, 0), (1, 1), (3000, 3), (3001, 4), (5999, 6), (6000, 6), (9000, 6)] as [(Int64, Int)] {
      var queue = try steady(6)
      let taken = queue.take(before: boundary)
      #expect(taken?.run.samples.count ?? 0 == count, "\(boundary)")
      #expect(queue.ready.count == 6 - count && queue.payloads.count == 6 - count)
      #expect(queue.readyStart == Int64(count) * 1000 && queue.readyBytes == (6 - count) * 100)
      guard let taken else { continue }
      #expect(taken.run.baseDecodeTime == 0 && taken.run.duration == Int64(count) * 1000)
      #expect(taken.run.byteCount == count * 100)
      #expect(taken.payloads.map { $0.getInteger(at: 0, as: UInt8.self) } == (0..<count).map { UInt8($0) })
    }
  }

  @Test func `A run is no longer than allowed, but has one sample at least`() throws {
    for (longest, count) in [(0, 1), (999, 1), (1999, 1), (2000, 2), (9000, 4)] as [(Int64, Int)] {
      var queue = try steady(6)
      #expect(queue.take(before: 4000, longest: longest)?.run.samples.count == count, "\(longest)")
    }
  }

  @Test func `Runs follow one another without a hole`() throws {
    var queue = try steady(6)
    var runs: [TrackRun] = []
    while let taken = queue.take(longest: 2500) { runs.append(taken.run) }
    #expect(runs.map(\.baseDecodeTime) == [0, 2000, 4000] && runs.map(\.duration) == [2000, 2000, 2000])
    #expect(queue.isEmpty && queue.reach == 6000 && queue.take() == nil)
  }

  @Test func `Samples that end before a time are forgotten`() throws {
    for (time, start) in [(999, 0), (1000, 1000), (1999, 1000), (2000, 2000), (99_000, 6000)] as [(Int64, Int64)] {
      var queue = try steady(6)
      queue.drop(endingBefore: time)
      #expect(queue.readyStart == start, "\(time)")
    }
  }
}

import Base
@testable import FMP4
import Glibc
import NIOCore
import Synchronization
import Testing
@testable import Transcode

/// Thumbnails by workers, of which some do what they should not.
@Suite struct StillImageMakerTests {
  /// Starts workers, and counts how many were started and ended.
  private final class Staff: Sendable {
    let started = Mutex(0)
    let ended = Mutex(0)
    private let work: (@Sendable (Int32) -> Void)?

    init(_ work: (@Sendable (Int32) -> Void)? = nil) { self.work = work }

    var launcher: WorkerLauncher {
      WorkerLauncher { () throws(WorkerFailure) in
        let worker = try WorkerThread.launcher(self.work).start()
        self.started.withLock { $0 += 1 }
        return RunningWorker(socket: worker.socket, processID: nil) {
          self.ended.withLock { $0 += 1 }
          return worker.end()
        }
      }
    }
  }

  private struct Made {
    var result: Result<ByteBuffer, StillImageError>
    var milliseconds: Int64
  }

  /// Asks on a thread of its own, since it waits.
  private func make(
    _ launcher: WorkerLauncher, _ sample: ByteBuffer, _ track: TrackDescription, milliseconds: Int64 = 20_000
  ) async throws -> Made {
    let maker = StillImageMaker(launcher: launcher, patience: milliseconds * 1_000_000)
    let made = Mutex<Made?>(nil)
    try await DedicatedThread.run(named: "maker") {
      let start = MonotonicTime.now()
      let result = Result { () throws(StillImageError) in try maker.jpeg(of: sample, track: track) }
      made.withLock {
        $0 = Made(result: result, milliseconds: (.now() &- start) / 1_000_000)
      }
    }
    return try #require(made.withLock { $0 })
  }

  private func failure(_ made: Made) throws -> StillImageError {
    guard case .failure(let error) = made.result else { throw WorkerFailure("fail", 0) }
    return error
  }

  @Test func aWorkerMakesTheJPEGAndIsEnded() async throws {
    let (sample, upright) = try StillImageTests.keyFrame()
    for rotation in [Rotation.none, .clockwise90] {
      var track = upright
      track.rotation = rotation
      let staff = Staff()
      let made = try await make(staff.launcher, sample.payload, track)
      let expected = try StillImage.jpeg(of: try StillImageRequest(of: sample.payload, track: track))
      #expect(try made.result.get() == expected)
      #expect(staff.started.withLock { $0 } == 1)
      #expect(staff.ended.withLock { $0 } == 1)
    }
  }

  @Test func bitsThatAreNoFrameFailWithTheDecodersWords() async throws {
    let (sample, track) = try StillImageTests.keyFrame()
    let garbage = ByteBuffer(bytes: (0..<5000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let staff = Staff()
    let error = try failure(try await make(staff.launcher, garbage, track))
    #expect(error.cause == .sample)
    #expect(error.description.hasPrefix("cannot decode the key frame: "), "\(error)")
    #expect(staff.ended.withLock { $0 } == 1)
    let audio = TrackDescription(
      id: .audio, codec: Codec(try Opus.Configuration(channels: 2, preSkip: 0)), timescale: 48_000)
    let none = Staff()
    #expect(try failure(try await make(none.launcher, sample.payload, audio)).cause == .sample)
    #expect(none.started.withLock { $0 } == 0, "no worker is started for it")
  }

  @Test func aKeyFrameBeyondTheLimitNeedsNoWorker() async throws {
    let (_, track) = try StillImageTests.keyFrame()
    let staff = Staff()
    let large = ByteBuffer(repeating: 0, count: StillImageMaker.largestSample + 1)
    let error = try failure(try await make(staff.launcher, large, track))
    #expect(error.description.contains("\(StillImageMaker.largestSample + 1) bytes"))
    #expect(staff.started.withLock { $0 } == 0)
  }

  /// What workers do that die: at once, with the request half read, with the answer half given.
  private static let deaths: [@Sendable (Int32) -> Void] = [
    { _ in },
    { socket in
      var bytes = [UInt8](repeating: 0, count: 100)
      _ = recv(socket, &bytes, bytes.count, 0)
    },
    { socket in
      var bytes = [UInt8](repeating: 0, count: 100)
      _ = recv(socket, &bytes, bytes.count, 0)
      _ = send(socket, [0, 0, 100, 0, 70, 0xFF, 0xD8] as [UInt8], 7, Int32(MSG_NOSIGNAL))
    },
  ]

  @Test(arguments: deaths.indices)
  func aWorkerThatDiesFailsTheThumbnailAtOnce(death: Int) async throws {
    let (sample, track) = try StillImageTests.keyFrame()
    let staff = Staff(Self.deaths[death])
    let error = try failure(try await make(staff.launcher, sample.payload, track))
    #expect(error.cause == .sample)
    #expect(error.description == "its worker is gone (it was told to)")
    #expect(staff.ended.withLock { $0 } == 1)
  }

  /// Neither a worker that reads nothing, nor one that reads all and says nothing, nor one whose answer comes by drops.
  private static let delays: [@Sendable (Int32) -> Void] = [
    { socket in
      var interest = pollfd(fd: socket, events: 0, revents: 0)
      poll(&interest, 1, 20_000)
    },
    { socket in
      var bytes = [UInt8](repeating: 0, count: 65_536)
      while recv(socket, &bytes, bytes.count, 0) > 0 {}
    },
    { socket in
      var length: [UInt8] = [0, 0, 200, 0, 70]
      while send(socket, length, length.count, Int32(MSG_NOSIGNAL)) > 0 {
        length = [0xFF]
        DedicatedThread.sleep(nanoseconds: 10_000_000)
      }
    },
  ]

  @Test(arguments: delays.indices)
  func aWorkerThatHangsIsGivenUpInTime(delay: Int) async throws {
    let (_, track) = try StillImageTests.keyFrame()
    let staff = Staff(Self.delays[delay])
    let sample = ByteBuffer(repeating: 7, count: 4 << 20)
    let made = try await make(staff.launcher, sample, track, milliseconds: 300)
    let error = try failure(made)
    #expect(error.description == "its worker has not made it in 300 ms")
    #expect(made.milliseconds >= 300)
    #expect(made.milliseconds < 10_000)
    #expect(staff.ended.withLock { $0 } == 1)
  }

  private static let nonsense: [ByteBuffer] = [
    // A message beyond the limit, one of no length, one of an unknown type, one of a ladder, and what is no JPEG.
    ByteBuffer(integer: UInt32(TranscodeLimits.stillBytes + 2)), ByteBuffer(integer: UInt32(0)),
    ByteBuffer(bytes: [0, 0, 0, 1, 200]), TranscodeWire.encode(.drained),
    TranscodeWire.encode(.track(rung: 0, record: ByteBuffer(bytes: [1]))),
    TranscodeWire.encode(.still(ByteBuffer(bytes: [0x47, 0x49, 0x46]))), ByteBuffer(bytes: [0, 0, 0, 1, 70]),
  ]

  @Test(arguments: nonsense.indices)
  func aWorkerThatTalksNonsenseIsNotHeardOut(index: Int) async throws {
    let (sample, track) = try StillImageTests.keyFrame()
    let words = Array(Self.nonsense[index].readableBytesView)
    let staff = Staff { socket in
      _ = send(socket, words, words.count, Int32(MSG_NOSIGNAL))
      var bytes = [UInt8](repeating: 0, count: 65_536)
      while recv(socket, &bytes, bytes.count, 0) > 0 {}
    }
    let error = try failure(try await make(staff.launcher, sample.payload, track))
    #expect(error.cause == .sample)
    #expect(error.description.hasPrefix("its worker does not keep to the protocol: "), "\(error)")
    #expect(staff.ended.withLock { $0 } == 1)
  }

  @Test func withoutAWorkerItIsTheMachinesFault() async throws {
    let (sample, track) = try StillImageTests.keyFrame()
    let launcher = WorkerLauncher { () throws(WorkerFailure) in throw WorkerFailure("start weir", EAGAIN) }
    #expect(try failure(try await make(launcher, sample.payload, track)).cause == .machine)
  }
}

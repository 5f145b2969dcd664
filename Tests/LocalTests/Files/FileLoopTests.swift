import FMP4
@testable import Local
import NIOCore
import Testing

@Suite struct FileLoopTests {
  /// Five seconds of 30 fps from tick 1024 on, and audio of 1024 samples a frame that lasts `audioFrames` of them.
  private func pass(audioFrames: Int) -> [MediaFile.Unit] {
    let frames = (0..<150).map { index in
      MediaFile.Unit(
        track: .video, timescale: 15360, decodeTime: Int64(index) * 512 - 1024, compositionOffset: 1024, duration: 512,
        isSync: index % 60 == 0, isDisposable: false, payload: ByteBuffer(integer: UInt8(1)))
    }
    let audio = (0..<audioFrames).map { index in
      MediaFile.Unit(
        track: .audio, timescale: 48000, decodeTime: Int64(index) * 1024, compositionOffset: 0, duration: 1024,
        isSync: true, isDisposable: false, payload: ByteBuffer(integer: UInt8(2)))
    }
    return (frames + audio).sorted {
      MediaTime(ticks: $0.decodeTime, timescale: $0.timescale)
        < MediaTime(ticks: $1.decodeTime, timescale: $1.timescale)
    }
  }

  private func play(passes: Int, audioFrames: Int) -> (video: [Sample], audio: [Sample]) {
    var loop = FileLoop()
    let units = pass(audioFrames: audioFrames)
    loop.setOrigin(units)
    var samples: [Sample] = []
    for _ in 0..<passes {
      samples += units.compactMap { loop.place($0) }
      loop.beginPass()
    }
    return (samples.filter { $0.track == .video }, samples.filter { $0.track == .audio })
  }

  @Test(arguments: [234, 235, 236])
  func videoAndAudioGoOnWithoutAGap(audioFrames: Int) {
    let (video, audio) = play(passes: 20, audioFrames: audioFrames)
    #expect(video.map(\.decodeTime) == (0..<3000).map { Int64($0) * 512 })
    let first = audio[0].decodeTime
    let steps = Set(zip(audio, audio.dropFirst()).map { $1.decodeTime - $0.decodeTime })
    if audioFrames > 234 {
      #expect(steps == [1024])
    } else {
      // Audio that ends before the video leaves whole frames out now and then.
      #expect(steps.isSubset(of: [1024, 2048]))
    }
    #expect(first == 3200)
  }

  @Test func audioStaysWithItsVideoWithinHalfAFrame() {
    let units = pass(audioFrames: 236)
    var loop = FileLoop()
    loop.setOrigin(units)
    for number in 0..<200 {
      let placed = units.compactMap { unit in loop.place(unit).map { (unit, $0) } }
      for (unit, sample) in placed where unit.track == .audio {
        // Where the frames of this pass put it, in samples.
        let due = Int64(number) * 240_000 + 3200 + unit.decodeTime
        #expect(abs(sample.decodeTime - due) <= 512)
      }
      loop.beginPass()
    }
  }

  @Test func audioThatGoesOnLengthensThePass() {
    let (video, audio) = play(passes: 2, audioFrames: 469)
    #expect(audio.count == 938)
    #expect(video.count == 300)
    #expect(video[150].decodeTime > 150 * 512 * 2 - 512)
    #expect(zip(audio, audio.dropFirst()).allSatisfy { $1.decodeTime - $0.decodeTime == 1024 })
  }
}

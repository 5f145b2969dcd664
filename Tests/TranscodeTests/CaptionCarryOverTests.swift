import Testing
@testable import Transcode

@Suite struct CaptionCarryOverTests {
  private let filler: [UInt8] = [0xFC, 0x80, 0x80]

  @Test func `Captions of dropped frames go on with the next frame, in order and without fillers`() {
    var captions = CaptionCarryOver()
    let untouched = captions.next([0xFC, 1, 2] + filler)
    #expect(untouched == nil)
    captions.leave([0xFC, 1, 2] + filler + [0xF8, 9, 9])
    captions.leave(filler)
    captions.leave([0xFF, 3, 0, 0xFC])
    let next = captions.next([0xFD, 5, 6] + filler)
    #expect(next == [0xFC, 1, 2, 0xFF, 3, 0, 0xFD, 5, 6])
    let own = captions.next(filler)
    #expect(own == nil)
  }

  @Test func `A frame gets 31 triples, and 310 wait`() {
    var captions = CaptionCarryOver()
    for number in 0..<400 { captions.leave([0xFC, UInt8(number & 127) | 1, 2]) }
    var frames: [Int] = []
    while let next = captions.next([]) { frames.append(next.count) }
    #expect(frames == Array(repeating: 93, count: 10))
  }
}

import NIOCore
import Publishing
import Support
import Testing

@Suite("Video that refreshes its picture without key frames")
struct GradualRefreshTests {
  typealias S = RTMPScript

  /// A frame behind a recovery point: of x264 with intra refresh, or as with open groups of pictures.
  private func frame(_ point: UInt8?) -> [UInt8] {
    let slice: [UInt8] = [0x41, 0x9A, 0x22, 7]
    let units = (point.map { [[0x06, 0x06, 0x01, $0, 0x80]] } ?? []) + [slice]
    return [0x27, 1, 0, 0, 0] + units.flatMap { S.u32(UInt32($0.count)) + $0 }
  }

  /// Ten frames a second after one key frame; each twentieth has a recovery point.
  private func published(_ point: UInt8?, seconds: UInt32) -> SessionDriver {
    var driver = SessionDriver()
    driver.feed(S.opening() + S.metadata(audio: false) + S.video(S.avcHeader(), 0))
    for number in 0..<seconds * 10 {
      driver.now = .at(Int64(number) * 100_000_000)
      let isPoint = number % 20 == 10
      driver.feed(S.video(number == 0 ? S.avcFrame(key: true) : frame(isPoint ? point : nil), number * 100))
    }
    return driver
  }

  @Test func itIsToldWithinTenSecondsAndWithdrawnWithAKeyFrame() {
    #expect(published(0x44, seconds: 4).warnings.isEmpty)
    var driver = published(0x44, seconds: 10)
    #expect(driver.warnings == [.onlyGradualRefresh])
    #expect(driver.samples.count == 100)
    driver.now = .at(10_000_000_000)
    driver.feed(S.video(S.avcFrame(key: true), 10_000))
    #expect(driver.warnings.isEmpty)
  }

  @Test func longAndOpenGroupsOfPicturesAreNone() {
    #expect(published(nil, seconds: 10).warnings.isEmpty)
    #expect(published(0xC4, seconds: 10).warnings.isEmpty)
  }
}

internal import Base
internal import Glibc
package import LibAV

/// The frames of the test source. Static parts are drawn once; each frame then changes only the moving parts.
///
/// The layout uses a grid of `unit` pixels, 80 across. Rows 1 to 3 hold the counter block (`CounterBlock`). Rows 5 to
/// 25 hold colour bars, with a grey panel over their middle that turns white for `flashSeconds` at each UTC second. In
/// rows 26 to 28 a block crosses the frame in 2 s. Below it are time and date in UTC and the frame number. Beside them
/// is a panel of noise, which keeps the bit rate at its setting.
package struct TestFrame {
  /// How long the panel stays white, in seconds.
  package static let flashSeconds = 0.1

  private let unit: Int
  private let schedule: TestSchedule
  private let counter: CounterBlock
  private let flashFrames: Int64
  private let crossing: Int64

  private var shownNumber: UInt32?
  private var shownFlash: Bool?
  private var shownBlock: Int?
  private var timeLine: BitmapText
  private var dateLine: BitmapText
  private var numberLine: BitmapText

  private static let paper: UInt8 = 28
  private static let ink: UInt8 = 210
  private static let panel: UInt8 = 60

  init(settings: TestSourceSettings, schedule: TestSchedule) {
    unit = TestSourceSettings.unit(width: settings.width)
    self.schedule = schedule
    counter = CounterBlock(frameWidth: settings.width)
    let framesPerSecond = Double(schedule.rate.timescale) / Double(schedule.rate.frameDuration)
    flashFrames = max(1, Int64((framesPerSecond * Self.flashSeconds).rounded()))
    crossing = max(1, Int64(framesPerSecond * 2))
    timeLine = BitmapText(x: 4 * unit, y: 30 * unit, dot: unit / 2)
    dateLine = BitmapText(x: 4 * unit, y: 35 * unit, dot: unit / 2)
    numberLine = BitmapText(x: 4 * unit, y: 40 * unit, dot: unit / 2)
  }

  /// Draws the static parts. The chroma planes have half the width and height.
  func drawBackground(luma: LumaPlane, blue: LumaPlane, red: LumaPlane, width: Int, height: Int) {
    luma.fill(x: 0, y: 0, width: width, height: height, with: Self.paper)
    blue.fill(x: 0, y: 0, width: width / 2, height: height / 2, with: 128)
    red.fill(x: 0, y: 0, width: width / 2, height: height / 2, with: 128)
    for (index, bar) in Self.bars.enumerated() {
      let (x, y, barWidth, barHeight) = ((4 + 9 * index) * unit, 5 * unit, 9 * unit, 20 * unit)
      luma.fill(x: x, y: y, width: barWidth, height: barHeight, with: bar.luma)
      blue.fill(x: x / 2, y: y / 2, width: barWidth / 2, height: barHeight / 2, with: bar.blue)
      red.fill(x: x / 2, y: y / 2, width: barWidth / 2, height: barHeight / 2, with: bar.red)
    }
    let panel = (x: 32 * unit, y: 9 * unit, width: 16 * unit, height: 12 * unit)
    blue.fill(x: panel.x / 2, y: panel.y / 2, width: panel.width / 2, height: panel.height / 2, with: 128)
    red.fill(x: panel.x / 2, y: panel.y / 2, width: panel.width / 2, height: panel.height / 2, with: 128)
  }

  /// Changes the last frame to this one.
  mutating func draw(_ frame: Int64, into luma: LumaPlane) {
    let number = UInt32(truncatingIfNeeded: frame)
    counter.draw(number, over: shownNumber, into: luma)
    shownNumber = number
    drawFlash(frame, into: luma)
    drawBlock(frame, into: luma)
    drawNoise(frame, into: luma)
    let time = UTCText(schedule.wallTime(of: frame))
    timeLine.show("\(time.clock).\(time.milliseconds)", in: luma, ink: Self.ink, paper: Self.paper)
    dateLine.show("\(time.date) UTC", in: luma, ink: Self.ink, paper: Self.paper)
    numberLine.show("#" + Self.padded(Int(frame), 8), in: luma, ink: Self.ink, paper: Self.paper)
  }

  /// Whether the panel of a decoded frame is white.
  package static func isFlashing(_ luma: LumaPlane, frameWidth: Int) -> Bool {
    let unit = TestSourceSettings.unit(width: frameWidth)
    return luma.mean(x: 36 * unit, y: 12 * unit, width: 8 * unit, height: 6 * unit) > 180
  }

  private mutating func drawFlash(_ frame: Int64, into luma: LumaPlane) {
    let isFlash = frame - schedule.firstFrameOfSecond(around: frame) < flashFrames
    guard isFlash != shownFlash else { return }
    shownFlash = isFlash
    luma.fill(
      x: 32 * unit, y: 9 * unit, width: 16 * unit, height: 12 * unit, with: isFlash ? LumaPlane.white : Self.panel)
  }

  private mutating func drawBlock(_ frame: Int64, into luma: LumaPlane) {
    if let shownBlock {
      luma.fill(x: shownBlock, y: 26 * unit, width: 2 * unit, height: 2 * unit, with: Self.paper)
    }
    let position = 4 * unit + Int(frame % crossing) * 70 * unit / Int(crossing)
    luma.fill(x: position, y: 26 * unit, width: 2 * unit, height: 2 * unit, with: Self.ink)
    shownBlock = position
  }

  /// Noise from the frame number: the same on each run, new in each frame.
  private func drawNoise(_ frame: Int64, into luma: LumaPlane) {
    var state = UInt64(bitPattern: frame) &* 0x9E37_79B9_7F4A_7C15 | 1
    luma.fillWords(x: 62 * unit, y: 30 * unit, width: 14 * unit & ~7, height: 12 * unit) {
      // xorshift64 (Marsaglia 2003). Each word holds eight pixels from 64 to 127.
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return state & 0x3F3F_3F3F_3F3F_3F3F &+ 0x4040_4040_4040_4040
    }
  }

  private static func padded(_ number: Int, _ digits: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, digits - text.count)) + text
  }

  /// Bars of 75 % brightness (ITU-R BT.709): white, yellow, cyan, green, magenta, red, blue, black.
  private static let bars: [(luma: UInt8, blue: UInt8, red: UInt8)] = [
    (180, 128, 128), (168, 44, 136), (145, 147, 44), (133, 63, 52), (63, 193, 204), (51, 109, 212), (28, 212, 120),
    (16, 128, 128),
  ]
}

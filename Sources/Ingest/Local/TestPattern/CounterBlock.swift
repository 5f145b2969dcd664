package import LibAV

/// The frame number as a row of black and white squares. It survives coding and scaling, and programs can read it.
///
/// Geometry, in units of `TestSourceSettings.unit` (`width / 80`, rounded down to even; 16 pixels at 1280): 32 squares of 2 × 2
/// units. The left edge of the first is at 8, its top edge at 1. Each next one is 2 units to the right, without gaps.
/// White (luma above 128) is 1, black is 0. The most significant bit comes first. The mean of the middle quarter of
/// each square gives its value in any decoded frame. In a scaled frame, scale the geometry too. The number is the
/// frame's index in the source's cadence: 0, 1, 2 … modulo 2³². It has a gap exactly where the source dropped a frame.
package struct CounterBlock: Sendable, Hashable {
  package static let squares = 32

  /// Pixels: left edge of the first square, top edge of all, and side of a square.
  let left: Int
  let top: Int
  let side: Int

  package init(frameWidth: Int) {
    let unit = TestSourceSettings.unit(width: frameWidth)
    left = 8 * unit
    top = unit
    side = 2 * unit
  }

  /// Draws the squares that differ from those of the last number.
  func draw(_ number: UInt32, over previous: UInt32?, into plane: LumaPlane) {
    let changed = previous.map { $0 ^ number } ?? .max
    for index in 0..<Self.squares where bit(index, of: changed) {
      let value = bit(index, of: number) ? LumaPlane.white : LumaPlane.black
      plane.fill(x: left + index * side, y: top, width: side, height: side, with: value)
    }
  }

  /// The number in a decoded frame of the width that the block was made for.
  package func read(from plane: LumaPlane) -> UInt32 {
    var number: UInt32 = 0
    for index in 0..<Self.squares {
      let inset = side / 4
      let mean = plane.mean(
        x: left + index * side + inset, y: top + inset, width: side - 2 * inset, height: side - 2 * inset)
      number = number << 1 | (mean > 128 ? 1 : 0)
    }
    return number
  }

  private func bit(_ index: Int, of number: UInt32) -> Bool {
    number >> UInt32(Self.squares - 1 - index) & 1 == 1
  }
}

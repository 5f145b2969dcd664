/// A line of large text that redraws only changed letters. Each letter has five by seven dots.
package struct BitmapText {
  private let x: Int
  private let y: Int
  /// Side of a dot in pixels.
  private let dot: Int
  private var shown: [UInt8] = []

  /// Dots from one letter to the next.
  private static let advance = 6
  private static let letterWidth = 5
  private static let letterHeight = 7

  package init(x: Int, y: Int, dot: Int) {
    self.x = x
    self.y = y
    self.dot = dot
  }

  /// Replaces the text. Letters without a shape leave a gap.
  package mutating func show(_ text: String, in plane: LumaPlane, ink: UInt8, paper: UInt8) {
    let letters = Array(text.utf8)
    for position in 0..<max(letters.count, shown.count) {
      let letter = position < letters.count ? letters[position] : UInt8(ascii: " ")
      let before = position < shown.count ? shown[position] : UInt8(ascii: " ")
      guard letter != before else { continue }
      let left = x + position * Self.advance * dot
      let rows = Self.shape(of: letter)
      for row in 0..<Self.letterHeight {
        for column in 0..<Self.letterWidth {
          let isInk = rows >> UInt64((Self.letterHeight - 1 - row) * 5 + Self.letterWidth - 1 - column) & 1 == 1
          plane.fill(
            x: left + column * dot, y: y + row * dot, width: dot, height: dot, with: isInk ? ink : paper)
        }
      }
    }
    shown = letters
  }

  /// Seven rows of five dots. The top row is in the highest bits.
  private static func shape(of letter: UInt8) -> UInt64 {
    switch Unicode.Scalar(letter) {
    case "0": 0b01110_10001_10011_10101_11001_10001_01110
    case "1": 0b00100_01100_00100_00100_00100_00100_01110
    case "2": 0b01110_10001_00001_00110_01000_10000_11111
    case "3": 0b11110_00001_00001_01110_00001_00001_11110
    case "4": 0b00010_00110_01010_10010_11111_00010_00010
    case "5": 0b11111_10000_11110_00001_00001_10001_01110
    case "6": 0b00110_01000_10000_11110_10001_10001_01110
    case "7": 0b11111_00001_00010_00100_01000_01000_01000
    case "8": 0b01110_10001_10001_01110_10001_10001_01110
    case "9": 0b01110_10001_10001_01111_00001_00010_01100
    case ":": 0b00000_00100_00100_00000_00100_00100_00000
    case ".": 0b00000_00000_00000_00000_00000_01100_01100
    case "-": 0b00000_00000_00000_11111_00000_00000_00000
    case "#": 0b01010_01010_11111_01010_11111_01010_01010
    case "A": 0b01110_10001_10001_11111_10001_10001_10001
    case "E": 0b11111_10000_10000_11110_10000_10000_11111
    case "L": 0b10000_10000_10000_10000_10000_10000_11111
    case "M": 0b10001_11011_10101_10101_10001_10001_10001
    case "O": 0b01110_10001_10001_10001_10001_10001_01110
    case "R": 0b11110_10001_10001_11110_10100_10010_10001
    case "S": 0b01111_10000_10000_01110_00001_00001_11110
    case "U": 0b10001_10001_10001_10001_10001_10001_01110
    case "T": 0b11111_00100_00100_00100_00100_00100_00100
    case "C": 0b01110_10001_10000_10000_10000_10001_01110
    default: 0
    }
  }
}

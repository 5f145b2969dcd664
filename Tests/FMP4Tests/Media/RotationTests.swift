@testable import FMP4
import Testing

@Suite struct RotationTests {
  /// What is at the upper left, upper right, lower right and lower left of a square that was turned.
  private func corners(_ rotation: Rotation) -> [Int] {
    let upright = rotation.isMirrored ? [1, 0, 3, 2] : [0, 1, 2, 3]
    let steps = Int(rotation.degrees / 90)
    return (0..<4).map { upright[($0 + 4 - steps) % 4] }
  }

  @Test func twoOfThemAreOneOfThem() {
    for first in Rotation.allCases {
      for second in Rotation.allCases {
        let turned = corners(first)
        #expect(corners(first.followed(by: second)) == corners(second).map { turned[$0] }, "\(first) and \(second)")
      }
    }
    #expect(Set(Rotation.allCases.map(corners)).count == 8)
  }

  @Test func eachHasAWord() {
    let words = ["0", "90", "180", "270", "mirrored", "mirrored-90", "mirrored-180", "mirrored-270"]
    #expect(Rotation.allCases.map(\.description) == words)
  }

  @Test func aMatrixThatIsNearlyOneIsThatOne() {
    #expect(Rotation(a: 0, b: 0, c: 0, d: 0) == .none)
    #expect(Rotation(a: -3, b: 65536, c: -65536, d: 2) == .clockwise90)
    #expect(Rotation(a: .min, b: .min, c: .min, d: .min) == .clockwise180)
  }
}

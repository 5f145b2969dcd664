import LibAV
import Testing

@Suite("Large letters in an image")
struct BitmapTextTests {
  private func drawn<Result>(width: Int = 40, height: Int = 16, _ body: (LumaPixels) throws -> Result) rethrows
    -> Result
  {
    let pixels = LumaPixels(width: width, height: height, filled: 99)
    defer { pixels.free() }
    return try body(pixels)
  }

  @Test func `A letter has its shape, and nothing around it is touched`() {
    drawn { pixels in
      var text = BitmapText(x: 1, y: 2, dot: 1)
      text.show("L2", in: pixels.plane, ink: 235, paper: 16)
      #expect(
        pixels.text(235, x: 1..<12, y: 2..<9) == [
          "#......###.", "#.....#...#", "#.........#", "#.......##.", "#......#...", "#.....#....", "#####.#####",
        ])
      // Paper within the letters; between them and outside, what was there.
      #expect(pixels[2, 2] == 16 && pixels[6, 2] == 99)
      #expect(pixels[0, 2] == 99 && pixels[1, 1] == 99 && pixels[1, 9] == 99 && pixels[12, 2] == 99)
    }
  }

  @Test func `A dot has as many pixels as are asked for`() {
    drawn { pixels in
      var text = BitmapText(x: 0, y: 0, dot: 2)
      text.show("-", in: pixels.plane, ink: 235, paper: 16)
      let dash = pixels.text(235, x: 0..<10, y: 0..<14)
      #expect(dash.enumerated().allSatisfy { $1 == String(repeating: [6, 7].contains($0) ? "#" : ".", count: 10) })
      #expect(pixels[10, 6] == 99 && pixels[0, 14] == 99)
    }
  }

  @Test func `Only letters that changed are drawn anew`() {
    drawn { pixels in
      var text = BitmapText(x: 0, y: 0, dot: 1)
      text.show("11", in: pixels.plane, ink: 235, paper: 16)
      pixels.plane.fill(x: 0, y: 0, width: 40, height: 16, with: 50)
      text.show("17", in: pixels.plane, ink: 235, paper: 16)
      #expect(pixels.text(50, x: 0..<5, y: 0..<7) == Array(repeating: "#####", count: 7), "the first stayed")
      #expect(pixels.text(235, x: 6..<11, y: 0..<2) == ["#####", "....#"])
    }
  }

  @Test func `A shorter text takes the rest away, and a sign without a shape is a gap`() {
    drawn { pixels in
      var text = BitmapText(x: 0, y: 0, dot: 1)
      text.show("88", in: pixels.plane, ink: 235, paper: 16)
      text.show("8", in: pixels.plane, ink: 235, paper: 16)
      #expect(pixels.text(16, x: 6..<11, y: 0..<7) == Array(repeating: "#####", count: 7))
      text.show("?", in: pixels.plane, ink: 235, paper: 16)
      #expect(pixels.text(16, x: 0..<5, y: 0..<7) == Array(repeating: "#####", count: 7))
    }
  }

  @Test func `What lies outside of the image is left out`() {
    drawn(width: 8, height: 4) { pixels in
      var text = BitmapText(x: -3, y: -2, dot: 1)
      text.show("888", in: pixels.plane, ink: 235, paper: 16)
      // The last two columns of the first letter, from its third row on.
      #expect(pixels.text(235, x: 0..<2, y: 0..<4) == [".#", "#.", ".#", ".#"])
    }
  }
}

import LibAV

/// Memory of an image's brightness, for tests of what is drawn.
struct LumaPixels {
  let width: Int
  let height: Int
  private let memory: UnsafeMutableRawBufferPointer

  init(width: Int, height: Int, filled value: UInt8 = 0) {
    (self.width, self.height) = (width, height)
    memory = .allocate(byteCount: width * height, alignment: 16)
    memory.initializeMemory(as: UInt8.self, repeating: value)
  }

  func free() { memory.deallocate() }

  var plane: LumaPlane { LumaPlane(pixels: memory, stride: width, width: width, height: height) }

  subscript(x: Int, y: Int) -> UInt8 { memory[y * width + x] }

  /// A rectangle as lines of text, `#` where it has this value.
  func text(_ ink: UInt8, x: Range<Int>, y: Range<Int>) -> [String] {
    y.map { row in String(x.map { self[$0, row] == ink ? "#" : "." }) }
  }
}

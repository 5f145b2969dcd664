/// The luma plane of a frame, one byte per pixel: 16 is black, 235 is white (ITU-R BT.709, limited range). A view of
/// memory with another owner.
package struct LumaPlane {
  package static let black: UInt8 = 16
  package static let white: UInt8 = 235

  private let pixels: UnsafeMutableRawBufferPointer
  /// Bytes from one row to the next.
  private let stride: Int
  private let width: Int
  private let height: Int

  /// - Parameter pixels: at least `stride × height` bytes.
  package init(pixels: UnsafeMutableRawBufferPointer, stride: Int, width: Int, height: Int) {
    precondition(stride >= width && pixels.count >= stride * height, "the plane is larger than its memory")
    self.pixels = pixels
    self.stride = stride
    self.width = width
    self.height = height
  }

  /// Fills a rectangle, clipped to the frame.
  package func fill(x: Int, y: Int, width rectangleWidth: Int, height rectangleHeight: Int, with value: UInt8) {
    let (left, right) = (max(x, 0), min(x + rectangleWidth, width))
    let (top, bottom) = (max(y, 0), min(y + rectangleHeight, height))
    guard left < right else { return }
    for row in top..<max(top, bottom) {
      let start = row * stride + left
      UnsafeMutableRawBufferPointer(rebasing: pixels[start..<start + right - left])
        .initializeMemory(as: UInt8.self, repeating: value)
    }
  }

  /// Writes words of eight pixels along the rows of a rectangle. Its width is a multiple of eight.
  package func fillWords(x: Int, y: Int, width rectangleWidth: Int, height rectangleHeight: Int, next: () -> UInt64) {
    precondition(x >= 0 && y >= 0 && x + rectangleWidth <= width && y + rectangleHeight <= height)
    for row in y..<y + rectangleHeight {
      for column in Swift.stride(from: x, to: x + rectangleWidth & ~7, by: 8) {
        pixels.storeBytes(of: next(), toByteOffset: row * stride + column, as: UInt64.self)
      }
    }
  }

  /// The mean of a rectangle inside the frame.
  package func mean(x: Int, y: Int, width rectangleWidth: Int, height rectangleHeight: Int) -> Int {
    precondition(x >= 0 && y >= 0 && x + rectangleWidth <= width && y + rectangleHeight <= height)
    var sum = 0
    for row in y..<y + rectangleHeight {
      for column in x..<x + rectangleWidth { sum += Int(pixels[row * stride + column]) }
    }
    return sum / max(rectangleWidth * rectangleHeight, 1)
  }
}

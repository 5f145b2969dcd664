internal import FMP4
internal import NIOCore

/// `colorInfo` of Enhanced RTMP v2 ("Metadata Frame"): the publisher's statement about the video's colours.
enum ColorInformation {
  /// Largest message that is read, in bytes. Real ones have some 400.
  static let maximumSize = 8192

  /// The colours that a metadata packet states. `.some(nil)` if it withdraws an earlier statement (an empty or
  /// undefined `colorInfo`). Nil if it states no colours or is unreadable.
  static func read(_ packet: ByteBuffer) -> VideoColor?? {
    var packet = packet
    guard packet.readableBytes <= maximumSize, let values = try? AMF0.readAll(&packet) else { return nil }
    guard values.first?.string == "colorInfo", let object = values.dropFirst().first else { return nil }
    let color = VideoColor(
      description: object["colorConfig"].flatMap(description), masteringDisplay: object["hdrMdcv"].flatMap(display),
      lightLevel: object["hdrCll"].flatMap(level))
    return color == VideoColor() ? .some(nil) : color
  }

  /// Code points of ITU-T H.273; 2 means "unspecified". The message has no range; the default is limited.
  private static func description(_ object: AMFValue) -> ColorDescription? {
    let points = ["colorPrimaries", "transferCharacteristics", "matrixCoefficients"].map { name in
      object[name]?.number.flatMap { UInt8(exactly: $0) } ?? 2
    }
    guard points.contains(where: { $0 != 2 }) else { return nil }
    return ColorDescription(primaries: points[0], transfer: points[1], matrix: points[2], range: .limited)
  }

  private static func display(_ object: AMFValue) -> MasteringDisplay? {
    guard let red = chromaticity(object, "red"), let green = chromaticity(object, "green"),
      let blue = chromaticity(object, "blue"), let white = chromaticity(object, "whitePoint"),
      let maximum = object["maxLuminance"]?.number, let minimum = object["minLuminance"]?.number
    else { return nil }
    return MasteringDisplay(
      red: red, green: green, blue: blue, white: white, maximumLuminance: steps(maximum, 10_000),
      minimumLuminance: steps(minimum, 10_000))
  }

  private static func chromaticity(_ object: AMFValue, _ name: String) -> MasteringDisplay.Chromaticity? {
    guard let x = object[name + "X"]?.number, let y = object[name + "Y"]?.number else { return nil }
    return MasteringDisplay.Chromaticity(x: steps(x, 50_000), y: steps(y, 50_000))
  }

  private static func level(_ object: AMFValue) -> ContentLightLevel? {
    guard let maximum = object["maxCLL"]?.number, let average = object["maxFall"]?.number else { return nil }
    return ContentLightLevel(maximum: steps(maximum, 1), maximumAverage: steps(average, 1))
  }

  /// `value` in units of 1 / `perUnit`, limited to the range of the box field. NaN counts as 0.
  private static func steps<Integer: FixedWidthInteger & UnsignedInteger>(_ value: Double, _ perUnit: Double) -> Integer
  {
    let scaled = (value * perUnit).rounded()
    guard scaled > 0 else { return 0 }
    return Integer(exactly: scaled) ?? .max
  }
}

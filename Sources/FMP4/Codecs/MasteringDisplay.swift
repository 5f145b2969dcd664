/// The display on which the video was mastered (SMPTE ST 2086), in the units of `mdcv` (ISO/IEC 14496-12 §12.1.7).
package struct MasteringDisplay: Sendable, Hashable {
  /// CIE 1931 coordinates in units of 0.00002.
  package struct Chromaticity: Sendable, Hashable {
    package var x: UInt16
    package var y: UInt16

    package init(x: UInt16, y: UInt16) {
      self.x = x
      self.y = y
    }
  }

  package var red: Chromaticity
  package var green: Chromaticity
  package var blue: Chromaticity
  package var white: Chromaticity
  /// Units of 0.0001 cd/m².
  package var maximumLuminance: UInt32
  package var minimumLuminance: UInt32

  package init(
    red: Chromaticity, green: Chromaticity, blue: Chromaticity, white: Chromaticity, maximumLuminance: UInt32,
    minimumLuminance: UInt32
  ) {
    self.red = red
    self.green = green
    self.blue = blue
    self.white = white
    self.maximumLuminance = maximumLuminance
    self.minimumLuminance = minimumLuminance
  }
}

/// Brightness of the video (CTA-861.3) in cd/m², as in `clli` (ISO/IEC 14496-12 §12.1.6).
package struct ContentLightLevel: Sendable, Hashable {
  /// Brightest sample of any frame.
  package var maximum: UInt16
  /// Brightest average of any frame.
  package var maximumAverage: UInt16

  package init(maximum: UInt16, maximumAverage: UInt16) {
    self.maximum = maximum
    self.maximumAverage = maximumAverage
  }
}

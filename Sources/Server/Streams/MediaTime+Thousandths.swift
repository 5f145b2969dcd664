internal import FMP4

extension MediaTime {
  /// Seconds, rounded to thousandths.
  package var thousandths: Double { Double(rescaled(to: 1000)) / 1000 }
}

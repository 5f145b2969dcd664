/// Positions in a recording as players show them: `1:30`, `00:01:30`, `2:00:00.5`.
package enum ClockText {
  /// Nanoseconds of minutes and seconds, or of hours, minutes and seconds; nil for anything else.
  package static func nanoseconds(_ text: String) -> Int64? {
    var fields = text.split(separator: ":", omittingEmptySubsequences: false)
    guard (2...3).contains(fields.count), let last = fields.popLast(), let seconds = DecimalText.split(String(last)),
      seconds.unit.isEmpty, last.prefix(while: { $0 != "." }).utf8.count <= 2,
      let fraction = seconds.value.times(1_000_000_000), fraction < 60_000_000_000
    else { return nil }
    var minutes: Int64 = 0
    for (index, field) in fields.enumerated() {
      guard (1...5).contains(field.utf8.count), field.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
        let number = Int64(field), index == 0 || number < 60
      else { return nil }
      minutes = minutes * 60 + number
    }
    return minutes * 60_000_000_000 + fraction
  }
}

internal import Base
internal import FMP4

extension ReplaySource.Moment {
  /// The text is not a moment.
  package struct Malformed: Error {
    package var detail: String
  }

  /// Reads seconds (`90`, `12.5`, `1:30`, `0:01:30`) or a time (`2026-11-21T07:24:10.5Z`, `2026-11-21T08:24:10+01:00`). `name` is
  /// the name of the value in errors.
  package init(_ text: String, name: String) throws(Malformed) {
    if let time = DecimalText.split(text), time.1.isEmpty, let nanoseconds = time.0.times(1_000_000_000) {
      self = .media(MediaTime(nanoseconds: nanoseconds))
    } else if let place = ClockText.nanoseconds(text) {
      self = .media(MediaTime(nanoseconds: place))
    } else if let wall = UTCText.read(text) {
      self = .wall(wall)
    } else {
      throw Malformed(
        detail:
          "\(name) is seconds (90, 1:30) or a time as 2026-11-21T07:24:10Z, not \(LogText.escaped(String(text.prefix(40))))."
      )
    }
  }
}

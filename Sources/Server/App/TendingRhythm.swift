/// How soon the server looks again at what goes on in it: twice a second while anything is live, rarely otherwise. An idle
/// server's processor time is that of its wake-ups.
struct TendingRhythm {
  enum Pause: Equatable {
    case short
    /// Whatever begins must end it.
    case long(Duration)
  }

  static let short = Duration.milliseconds(500)
  /// Of what nobody tells: a disk that others fill, and memory that they take.
  static let longest = Duration.seconds(10)
  /// So many looks must have found nothing: the rules of retention look at ages and sizes every 5 seconds only.
  static let looks = 12

  private var quietLooks = 0

  /// - Parameters:
  ///   - isLive: the last look has found something that needs the next one soon.
  ///   - due: how long nothing needs a look, as far as is known; nil if nothing ever will.
  mutating func pause(isLive: Bool, due: Duration?) -> Pause {
    quietLooks = isLive ? 0 : quietLooks + 1
    guard quietLooks >= Self.looks else { return .short }
    let time = min(due ?? Self.longest, Self.longest)
    return time > Self.short ? .long(time) : .short
  }
}

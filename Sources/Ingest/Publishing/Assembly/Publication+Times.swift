internal import Base
package import FMP4
internal import Logging

/// Times of a publication: places on its timeline, and the time of day.
extension Publication {
  /// Least change of the times of day that is logged, in milliseconds.
  private static let worthLogging: Int64 = 20

  /// Takes the units that wait, by what is known of their times.
  mutating func decide(to out: inout [PublicationAction]) {
    judge.decide()
    passJudged(to: &out)
  }

  /// Takes the units that waited until it was known whether a time was wrong.
  mutating func passJudged(to out: inout [PublicationAction]) {
    for judged in judge.takeJudged() {
      if judged.isMended {
        let kind = judged.unit.coding.kind
        out.append(.inBand(.mendedTime(kind)))
        warn(
          .wrongTime(kind),
          "the timestamp of a frame of \(kind.rawValue) was wrong, so it has the time at which it was expected; "
            + "check the encoder (weir_ingest_timestamps_mended_total counts them)", to: &out)
      }
      take(judged.unit, judged.now, to: &out)
    }
  }

  /// Place of a unit on the timeline. Nil if it is dropped. `lag` is from its time to its end, in nanoseconds. `isSync`: its track
  /// can be decoded from it on. `mayBegin`: players can begin with it.
  mutating func place(
    _ unit: WireUnit, length: Int64?, lag: Int64, isSync: Bool, mayBegin: Bool, _ now: MonotonicTime,
    to out: inout [PublicationAction]
  ) -> Timeline.Place? {
    let kind = unit.coding.kind
    guard let place = timeline.place(unit.track, kind, wire: unit.time, length: length, now: now) else {
      out.append(.lost(kind))
      warn(.stepBack, "\(kind.rawValue) stepped back in time; it is dropped until it catches up", to: &out)
      return nil
    }
    if let difference = place.alignedBy {
      warn(
        .clocksDiffer, "the clocks of audio and video are \(difference / 1_000_000) ms apart; aligned by arrival",
        to: &out)
    }
    progress.saw(place.time, now: now)
    let end = place.time &+ lag
    if place.isBreak {
      arrivals = ArrivalMeter()
      handleBreak(at: place.time, mayBegin: mayBegin, to: &out)
    }
    if let broke = untoldBreak {
      let leads = mayBegin || timeline.leads(unit.track, kind, at: place.time, after: PublicationLimits.leaderPatience)
      if isSync, leads {
        tellBreak(end, now, to: &out)
      } else if place.time &- broke > PublicationLimits.breakPatience {
        // There may never be a key frame, and pictures before one would be dropped: what is told is the time of day alone.
        tellTime(end, now, to: &out)
      }
    }
    if untoldBreak == nil { follow(end, now, to: &out) }
    if let fallsBehind = arrivals.saw(place.time, now: now) {
      let warning = PublicationWarning.fallsBehind
      out.append(fallsBehind ? .warn(warning) : .withdraw(warning))
      if fallsBehind { warn(.fallsBehind, warning.description, to: &out) }
    }
    return place
  }

  /// The timeline breaks at a unit. Those up to the next key frame stay: they continue what was before, in time and in decoding.
  private mutating func handleBreak(at time: Int64, mayBegin: Bool, to out: inout [PublicationAction]) {
    if case .gathering = state {
      guard mayBegin else { return }
      // Nothing was sent yet, so the start moves here.
      for unit in held.takeAll() { out.append(.inBand(.early(unit.kind))) }
      gate.forgetMedia()
      timesOfDay.forgetGathered()
    } else {
      untoldBreak = time
      if let anchor = timesOfDay.endBurst() { out.append(.event(.clock(anchor))) }
      out.append(.log(.warning, "the publisher's timestamps jumped; the timeline continues with a discontinuity"))
    }
  }

  private mutating func tellBreak(_ end: Int64, _ now: MonotonicTime, to out: inout [PublicationAction]) {
    out.append(.event(.discontinuity))
    tellTime(end, now, to: &out)
  }

  private mutating func tellTime(_ end: Int64, _ now: MonotonicTime, to out: inout [PublicationAction]) {
    untoldBreak = nil
    if let anchor = timesOfDay.breakTimeline(end, now: now) { out.append(.event(.clock(anchor))) }
  }

  /// Sends a new time of day if one is due.
  private mutating func follow(_ end: Int64, _ now: MonotonicTime, to out: inout [PublicationAction]) {
    if let anchor = timesOfDay.watchBurst(end, now: now) { out.append(.event(.clock(anchor))) }
    let change = timesOfDay.follow(end, now: now)
    if timesOfDay.clockError != toldClock { tellClock(to: &out) }
    guard let (anchor, reason) = change else { return }
    switch reason {
    case .lateBeginning(let milliseconds):
      if milliseconds >= Self.worthLogging {
        let text = "the first media came late; times of day are set \(milliseconds) ms earlier"
        out.append(.log(.info, text + ", in steps where they were listed"))
      }
    case .slowClock, .fastClock:
      warn(
        .clockDrifts,
        "the publisher's clock runs \(reason == .slowClock ? "slow" : "fast"); the times of day follow it",
        level: .info,
        to: &out)
    }
    out.append(.event(.clock(anchor)))
  }

  /// Tells by how much the publisher's clock is off, or that it no longer is.
  private mutating func tellClock(to out: inout [PublicationAction]) {
    if let toldClock { out.append(.withdraw(.clockIsOff(thousandths: toldClock))) }
    toldClock = timesOfDay.clockError
    guard let toldClock else { return }
    let warning = PublicationWarning.clockIsOff(thousandths: toldClock)
    warn(.clockIsOff, warning.description, to: &out)
    out.append(.warn(warning))
  }

  /// Takes the publisher's own clock: its time of day at time 0 of its tracks. It is used if it fits arrival.
  package mutating func receive(timeOfDay start: WallTime, to out: inout [PublicationAction]) {
    guard case .open = state, let shift = timeline.newest?.shift, let (anchor, lead) = timesOfDay.state(start &- shift)
    else { return }
    let milliseconds = lead / 1_000_000
    let text = "times of day are the publisher's own: frames ended \(milliseconds) ms before they came"
    out.append(.log(.info, text))
    out.append(.event(.clock(anchor)))
  }
}

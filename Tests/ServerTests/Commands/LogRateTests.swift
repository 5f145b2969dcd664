import Logging
@testable import Server
import Support
import Testing

@Suite struct LogRateTests {
  private func event(_ text: String, line: UInt = 1, level: Logger.Level = .warning) -> LogEvent {
    LogEvent(
      level: level, message: "\(text)", error: nil, metadata: nil, source: nil, file: "a.swift", function: "f",
      line: line)
  }

  @Test func ofOneCauseAndSubjectAFewAreWrittenAndTheRestCounted() {
    let rate = LogRate()
    for number in 0..<LogRate.burst {
      #expect(rate.leftOut(before: event("jumped by \(number) ms"), ["remote": "10.0.0.1:\(number)"], now: 5) == 0)
    }
    for number in 0..<30 {
      #expect(rate.leftOut(before: event("jumped by \(number) ms"), ["remote": "10.0.0.1:\(number)"], now: 6) == nil)
    }
    // Others are told meanwhile.
    #expect(rate.leftOut(before: event("jumped by 7 ms"), ["remote": "10.0.0.2:9"], now: 6) == 0)
    #expect(rate.leftOut(before: event("ended"), ["remote": "10.0.0.1:9"], now: 6) == 0)
    #expect(rate.leftOut(before: event("jumped"), ["remote": "10.0.0.1:9"], now: 5 + LogRate.span) == 0)
    #expect(
      rate.leftOut(before: event("jumped by 8 ms"), ["remote": "10.0.0.1:9"], now: 5 + LogRate.span) == 30)
  }

  @Test func ofOneCauseThereIsABoundForAllSubjects() {
    let rate = LogRate()
    let written = (0..<5000).count {
      rate.leftOut(before: event("refused"), ["remote": "10.\($0 / 250).0.\($0 % 250):1"], now: 5) != nil
    }
    #expect(written == LogRate.causeBurst)
    #expect(rate.leftOut(before: event("refused", line: 2), [:], now: 5) == 0)
  }

  @Test func whatACauseLeftOutIsToldWithItsNextLineWhosoeverThatIs() {
    let rate = LogRate()
    let written = (0..<400).count {
      rate.leftOut(before: event("refused"), ["remote": "10.1.\($0 / 250).\($0 % 250):1"], now: 5) != nil
    }
    #expect(written == LogRate.causeBurst)
    #expect(rate.leftOut(before: event("refused"), ["remote": "10.2.0.1:1"], now: 5 + LogRate.span) == 200)
    #expect(rate.leftOut(before: event("refused"), ["remote": "10.2.0.2:1"], now: 5 + LogRate.span) == 0, "told once")
    #expect(rate.overdue(now: 5 + 3 * LogRate.span) == [])
  }

  @Test func whatACauseLeftOutIsToldWithoutALineOfItsOwnWhenItsTimeIsOver() {
    let rate = LogRate()
    for number in 0..<400 {
      _ = rate.leftOut(before: event("refused x"), ["remote": "10.1.\(number / 250).\(number % 250):1"], now: 5)
    }
    #expect(rate.overdue(now: 4 + LogRate.span) == [])
    #expect(rate.overdue(now: 5 + LogRate.span) == [LogRate.Silence(count: 200, text: "refused x")])
    #expect(rate.overdue(now: 5 + LogRate.span) == [], "told once")
  }

  @Test func whatIsForgottenOfSubjectsIsToldOfTheirCause() {
    let rate = LogRate()
    for _ in 0..<LogRate.burst + 7 { _ = rate.leftOut(before: event("jumped"), ["remote": "10.0.0.1:1"], now: 5) }
    // So many others that the address is forgotten, each with a cause of its own.
    for line in 2..<4000 {
      #expect(rate.leftOut(before: event("x", line: UInt(line)), ["remote": "10.0.0.1:1"], now: 6) == 0)
    }
    #expect(rate.leftOut(before: event("jumped"), ["remote": "10.0.0.2:1"], now: 7) == 7)
  }

  @Test func whatIsAskedForIsAlwaysWritten() {
    let rate = LogRate()
    for level in [Logger.Level.debug, .critical] {
      for _ in 0..<1000 { #expect(rate.leftOut(before: event("x", level: level), [:], now: 5) == 0) }
    }
  }
}

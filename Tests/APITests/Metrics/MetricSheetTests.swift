@testable import API
import Base
import Glibc
import NIOCore
import Testing

@Suite struct MetricSheetTests {
  private func text(_ sheet: MetricSheet) -> String { String(buffer: sheet.text()) }

  @Test func aFamilyIsItsHelpItsTypeAndItsSeries() {
    var sheet = MetricSheet()
    sheet.add(.viewers, 3, of: .stream("cam"), [("protocol", "hls")])
    sheet.add(.viewers, 1, of: .stream("cam"), [("protocol", "dash")])
    #expect(
      text(sheet) == """
        # HELP weir_viewers \(Metric.viewers.help)
        # TYPE weir_viewers gauge
        weir_viewers{stream="cam",protocol="hls"} 3
        weir_viewers{stream="cam",protocol="dash"} 1

        """)
  }

  @Test func aSummaryIsASumAndACount() {
    var durations = Durations()
    durations.add(nanoseconds: 1_500_000_000)
    durations.add(nanoseconds: -5)
    var sheet = MetricSheet()
    sheet.add(.finalize, durations, of: .server, [("way", "inserted")])
    #expect(
      text(sheet).hasSuffix(
        "weir_recording_finalize_seconds_sum{way=\"inserted\"} 1.5\nweir_recording_finalize_seconds_count{way=\"inserted\"} 2\n"
      ))
    #expect(text(sheet).contains("# TYPE weir_recording_finalize_seconds summary\n"))
  }

  @Test func labelsAreEscapedAsTheFormatWantsIt() {
    var sheet = MetricSheet()
    sheet.add(.publishRejected, 1, [("reason", "a\\b\"c\nd")])
    #expect(text(sheet).contains(#"{reason="a\\b\"c\nd"} 1"#))
    #expect(MetricSheet.escaped("say \"no\" \\ \n", quotes: false) == #"say "no" \\ \n"#)
  }

  @Test func numbersAreWhatOthersRead() {
    let cases: [(Double, String)] = [
      (0, "0"), (-2, "-2"), (9_007_199_254_740_991, "9007199254740991"), (0.25, "0.25"), (1e300, "1e+300"),
      (.infinity, "+Inf"), (-.infinity, "-Inf"), (.nan, "NaN"),
    ]
    for (value, expected) in cases { #expect(MetricSheet.number(value) == expected) }
  }

  @Test func theOthersAreSummedUpOrTheWorstOfThemIsTold() {
    var sheet = MetricSheet()
    for lag in [0.5, 2, 1] {
      sheet.add(.recordingLag, lag, of: .other)
      sheet.add(.recordingBytes, 10, of: .other)
      sheet.add(.skew, lag, of: .other)
    }
    let text = text(sheet)
    #expect(text.contains("weir_recording_lag_seconds{stream=\"_other\"} 2\n"))
    #expect(text.contains("weir_recording_file_bytes{stream=\"_other\"} 30\n"))
    #expect(!text.contains("weir_av_skew_seconds"), "the skew of several streams means nothing")
    #expect(sheet.count == 2)
  }

  @Test func theDocumentationHasEachNameAndNoOther() throws {
    let path = "\(#filePath)".split(separator: "/").dropLast(4).joined(separator: "/")
    let file = try #require(fopen("/\(path)/docs/metrics.md", "r"))
    defer { fclose(file) }
    var documented: [String: String] = [:]
    var line = [CChar](repeating: 0, count: 4096)
    while fgets(&line, CInt(line.count), file) != nil {
      let cells = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self).split(
        separator: "|", omittingEmptySubsequences: false)
      guard cells.count >= 5, cells[1].hasPrefix(" `") else { continue }
      documented[String(cells[1].dropFirst(2).prefix { $0 != "`" })] = String(cells[2].filter { $0 != " " })
    }
    documented["/metrics"] = nil
    #expect(documented == Dictionary(uniqueKeysWithValues: Metric.allCases.map { ($0.rawValue, $0.kind.rawValue) }))
  }

  @Test func namesAreWhatPrometheusWants() {
    for metric in Metric.allCases {
      let name = metric.rawValue
      #expect(name.allSatisfy { $0.isLowercase || $0 == "_" }, "\(name)")
      #expect(name.hasPrefix("weir_") || name.hasPrefix("process_"))
      #expect((metric.kind == .counter) == name.hasSuffix("_total"))
      #expect(!["milliseconds", "_ms", "_bits", "kilobytes"].contains { name.contains($0) }, "\(name): base units")
    }
  }
}

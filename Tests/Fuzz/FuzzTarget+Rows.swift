import Answers
@testable import FMP4
import Foundation
import GRDB
@testable import RecordingFiles
@testable import Streams

/// What stands in a database: types and values need not be ours.
extension FuzzTarget {
  private static let database = try? DatabaseQueue()
  private static let streamStateColumns = [
    "name", "promise", "writtenAt", "epoch", "startedAt", "availabilityStart", "targetDuration", "partTicks",
    "partTimescale", "groupTicks", "groupTimescale", "promisesIndependence", "nextSequenceNumber", "nextPeriod",
    "initVersion", "breaks", "mediaEnd", "knownEnd", "clockOffset", "listedFrom", "periods",
    "inits",
  ]

  /// A column a line: its type (`i`, `r`, `b`, `n`, else text), then its value.
  static func row(_ bytes: [UInt8]) {
    var values = bytes.split(separator: 10, omittingEmptySubsequences: false).prefix(32).map(value)
    while values.count < streamStateColumns.count { values.append(.null) }
    let marks = Array(repeating: "?", count: values.count).joined(separator: ", ")
    let named = streamStateColumns.map { "? AS \($0)" }.joined(separator: ", ")
    let stateStore = StatementArguments(Array(values.prefix(streamStateColumns.count)))
    try? database?.read { database in
      let row = try Row.fetchOne(database, sql: "SELECT \(marks)", arguments: StatementArguments(values))
      if let entry = row.flatMap(RecordingEntry.init) {
        precondition(entry.bytes >= 0 && entry.seconds >= 0)
        precondition(!entry.place.contains("/../") && !entry.place.hasPrefix("/"))
        _ = JSONText.encode(EntryAnswer(entry, undoSeconds: 3600))
      }
      if let row = try Row.fetchOne(database, sql: "SELECT \(named)", arguments: stateStore),
        let entry = StreamStateEntry(row)
      {
        let kept = KeptPeriod.text(of: entry.record.periods)
        precondition(KeptPeriod.parse(kept).map(KeptPeriod.text) == kept)
        precondition(KeptInit.parse(KeptInit.text(of: entry.record.inits)) == entry.record.inits)
        _ = entry.record.withMargin().read(at: WallTime(nanoseconds: 1_795_245_850_000_000_000))
      }
    }
  }

  private static func value(_ line: ArraySlice<UInt8>) -> DatabaseValue {
    let text = String(decoding: line.dropFirst(), as: UTF8.self)
    return switch line.first {
    case UInt8(ascii: "i"): Int64(text)?.databaseValue ?? .null
    case UInt8(ascii: "r"): Double(text)?.databaseValue ?? .null
    case UInt8(ascii: "b"): Data(line.dropFirst()).databaseValue
    case UInt8(ascii: "n"): .null
    default: text.databaseValue
    }
  }
}

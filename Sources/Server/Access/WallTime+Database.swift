package import FMP4
package import GRDB

/// In tables a time is its nanoseconds.
extension WallTime: DatabaseValueConvertible {
  package var databaseValue: DatabaseValue { nanoseconds.databaseValue }

  package static func fromDatabaseValue(_ value: DatabaseValue) -> WallTime? {
    Int64.fromDatabaseValue(value).map(WallTime.init(nanoseconds:))
  }
}

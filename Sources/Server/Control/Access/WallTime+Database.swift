public import FMP4
public import GRDB

/// In tables a time is its nanoseconds. Public, since the type and the protocol are.
extension WallTime: DatabaseValueConvertible {
  public var databaseValue: DatabaseValue { nanoseconds.databaseValue }

  public static func fromDatabaseValue(_ value: DatabaseValue) -> WallTime? {
    Int64.fromDatabaseValue(value).map(WallTime.init(nanoseconds:))
  }
}

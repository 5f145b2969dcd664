package import GRDB

/// Safe access to columns. A database file can hold any type, and GRDB's own subscripts trap on an unexpected type.
extension Row {
  /// The value of a column, by index from 0. Nil for NULL and for a value of another type.
  package func value<Value: DatabaseValueConvertible>(_ column: Int) -> Value? {
    column < count ? Value.fromDatabaseValue(self[column]) : nil
  }

  /// The value of a column, by name.
  package func value<Value: DatabaseValueConvertible>(_ name: String) -> Value? {
    self[name].flatMap { Value.fromDatabaseValue($0.databaseValue) }
  }
}

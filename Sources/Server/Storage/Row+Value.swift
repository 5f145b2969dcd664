package import GRDB

/// A database is a file, which anybody can have written. GRDB's own subscripts trap where a value is of another type.
extension Row {
  /// The value of a column, counted from 0; nil for NULL and for what is no `Value`.
  package func value<Value: DatabaseValueConvertible>(_ column: Int) -> Value? {
    column < count ? Value.fromDatabaseValue(self[column]) : nil
  }

  /// The same of a column with a name.
  package func value<Value: DatabaseValueConvertible>(_ name: String) -> Value? {
    self[name].flatMap { Value.fromDatabaseValue($0.databaseValue) }
  }
}

package import GRDB

/// Safe access to the columns of a row. A column of SQLite can hold any type, and the file may come from another program. GRDB's
/// own typed subscripts trap on an unexpected type.
extension Row {
  /// The value of a column, by index from 0. Nil for NULL, for a value of another type, and beyond the last column.
  package func value<Value: DatabaseValueConvertible>(_ column: Int) -> Value? {
    column < count ? Value.fromDatabaseValue(self[column]) : nil
  }

  /// The value of a column, by name. Nil for NULL, for a value of another type, and for an unknown name.
  package func value<Value: DatabaseValueConvertible>(_ name: String) -> Value? {
    self[name].flatMap { Value.fromDatabaseValue($0.databaseValue) }
  }
}

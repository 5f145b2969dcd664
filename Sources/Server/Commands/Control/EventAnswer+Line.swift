internal import Answers
internal import Base
internal import Control

/// An event for the command line.
extension EventAnswer {
  var cells: [String?] { ["\(id)", at, kind, stream, who, data.json] }

  /// One line with tabs, as a row of `TextTable`.
  var text: String { cells.map { $0.map { LogText.escaped($0) } ?? "-" }.joined(separator: "\t") }
}

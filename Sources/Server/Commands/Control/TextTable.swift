internal import Base
internal import Glibc

/// A table for people: aligned columns below a bold head on a terminal. Elsewhere lines with tabs and no head, for programs.
struct TextTable {
  let columns: [String]
  private(set) var rows: [[String]] = []

  init(_ columns: String...) { self.columns = columns }

  /// Cells are escaped: some of them come from publishers.
  mutating func add(_ cells: String?...) { add(cells) }

  mutating func add(_ cells: [String?]) { rows.append(cells.map { $0.map { LogText.escaped($0) } ?? "-" }) }

  /// - Parameter isTerminal: whether standard output is one.
  func text(isTerminal: Bool = isatty(STDOUT_FILENO) == 1) -> String {
    guard isTerminal else { return rows.map { $0.joined(separator: "\t") + "\n" }.joined() }
    guard !rows.isEmpty else { return "none\n" }
    let widths = columns.indices.map { index in
      ([columns[index]] + rows.compactMap { $0.indices.contains(index) ? $0[index] : nil }).map(\.count).max() ?? 0
    }
    return "\u{1B}[1m\(Self.line(columns, widths))\u{1B}[0m\n" + rows.map { Self.line($0, widths) + "\n" }.joined()
  }

  private static func line(_ cells: [String], _ widths: [Int]) -> String {
    let padded = zip(cells, widths).map { cell, width in
      cell + String(repeating: " ", count: max(0, width - cell.count))
    }
    let line = padded.joined(separator: "  ")
    return String(line.reversed().drop { $0 == " " }.reversed())
  }
}

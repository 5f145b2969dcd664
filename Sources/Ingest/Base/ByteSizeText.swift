/// Sizes as text: `500MB`, `1GB` (powers of ten, as disks are sold) and `1GiB` (powers of two).
package enum ByteSizeText {
  /// Parses a size into bytes. A number without a unit is refused, because it rarely means bytes. Only 0 needs no unit.
  package static func parse(_ text: String) throws(ValueError) -> Int64 {
    guard let (value, unit) = DecimalText.split(text) else {
      throw ValueError("that is not a size", advice: "write 500MB, 1GB or 1GiB")
    }
    let bytesPerUnit: Int64
    switch unit.uppercased() {
    case "" where value.times(1_000_000_000) == 0: bytesPerUnit = 1
    case "": throw ValueError("a size needs a unit", advice: "write \(text)MB or \(text)GB, or \(text)B for bytes")
    case "B": bytesPerUnit = 1
    case "K", "KB": bytesPerUnit = 1000
    case "M", "MB": bytesPerUnit = 1_000_000
    case "G", "GB": bytesPerUnit = 1_000_000_000
    case "T", "TB": bytesPerUnit = 1_000_000_000_000
    case "KIB": bytesPerUnit = 1 << 10
    case "MIB": bytesPerUnit = 1 << 20
    case "GIB": bytesPerUnit = 1 << 30
    case "TIB": bytesPerUnit = 1 << 40
    default: throw ValueError("the unit \"\(unit)\" is unknown", advice: "use KB, MB, GB, TB or KiB, MiB, GiB, TiB")
    }
    guard let bytes = value.times(bytesPerUnit) else {
      throw ValueError("the size is too large", advice: "write 500MB, 1GB or 1GiB")
    }
    return bytes
  }
}

internal import NIOCore

/// The program association table: which programmes there are, and where their maps are (ISO/IEC 13818-1 §2.4.4.3). A
/// table may have several sections; it counts once all of them have come.
struct ProgramAssociation {
  struct Entry: Hashable {
    var program: UInt16
    /// The PID of its map.
    var pid: UInt16
  }

  static let pid: UInt16 = 0
  private static let tableID: UInt8 = 0

  /// In the table's order, at most `MPEGTSLimits.programs`.
  private(set) var entries: [Entry] = []
  private var version: (stream: UInt16, number: UInt8)?
  private var sections: [UInt8: [Entry]] = [:]

  /// Takes a section of the table's PID. True if the programmes have changed.
  mutating func receive(_ section: PSISection) -> Bool {
    guard section.tableID == Self.tableID, let header = section.long, header.isCurrent, header.number <= header.last
    else { return false }
    if version?.stream != header.tableExtension || version?.number != header.version {
      version = (header.tableExtension, header.version)
      sections = [:]
    }
    var body = section.body
    var found: [Entry] = []
    while let program: UInt16 = body.readInteger(), let pid: UInt16 = body.readInteger() {
      // Number 0 is the network's information, not a programme.
      if program != 0 { found.append(Entry(program: program, pid: pid & TransportPacket.range)) }
    }
    sections[header.number] = found
    guard sections.count == Int(header.last) &+ 1 else { return false }
    let all = sections.sorted { $0.key < $1.key }.flatMap(\.value)
    let new = Array(all.prefix(MPEGTSLimits.programs))
    defer { entries = new }
    return new != entries
  }
}

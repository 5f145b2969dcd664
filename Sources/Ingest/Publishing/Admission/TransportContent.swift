package import FMP4

/// What is in the transport stream of a publication, and what became of it.
package struct TransportContent: Sendable, Hashable {
  /// A PID that packets came with, or that a table names.
  package struct Element: Sendable, Hashable {
    package var pid: UInt16
    /// The programme whose map names it. Nil for a PID that no programme has.
    package var program: UInt16?
    /// What it carries. "unknown" if no table names it.
    package var name: String
    /// Nil for what is neither video nor audio.
    package var kind: MediaKind?
    /// Its media is a track of the publication.
    package var isTaken: Bool
    package var packets: Int

    package init(
      pid: UInt16, program: UInt16?, name: String, kind: MediaKind?, isTaken: Bool, packets: Int
    ) {
      self.pid = pid
      self.program = program
      self.name = name
      self.kind = kind
      self.isTaken = isTaken
      self.packets = packets
    }
  }

  /// The programme that is published.
  package var program: UInt16?
  /// All programmes, in the order of the association table.
  package var programs: [UInt16] = []
  /// By PID: those of tables, and at most as many others.
  package var elements: [Element] = []
  /// Packets of PIDs that found no place in `elements`.
  package var otherPackets = 0
  /// Sections of cues with a wrong checksum, or that end within a field.
  package var damagedCues = 0
  /// Cues whose content is encrypted.
  package var encryptedCues = 0

  package init() {}
}

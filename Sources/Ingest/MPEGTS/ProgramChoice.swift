/// The programmes of a transport stream that are followed.
package enum ProgramChoice: Hashable, Sendable {
  /// The first one in the association table that has a track.
  case first
  case number(UInt16)
  /// The first one as with `first`, and each other one beside it.
  case each
  case all

  /// What publishers write: a number from 1 to 65535, or `each`. Nil for anything else.
  package init?(_ text: some StringProtocol) {
    if text == "each" {
      self = .each
    } else if let number = UInt16(text), number > 0 {
      self = .number(number)
    } else {
      return nil
    }
  }

  /// Four bytes for the worker of SRT. Programmes have numbers of 16 bits.
  package var code: UInt32 {
    switch self {
    case .first: 0
    case .number(let number): UInt32(number)
    case .each: 0x1_0000
    case .all: 0x1_0001
    }
  }

  /// Nil if no choice has that code.
  package init?(code: UInt32) {
    switch code {
    case 0: self = .first
    case 0x1_0000: self = .each
    case 0x1_0001: self = .all
    default:
      guard let number = UInt16(exactly: code) else { return nil }
      self = .number(number)
    }
  }
}

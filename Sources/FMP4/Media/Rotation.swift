/// How a player turns the video: mirrored or not, then rotated clockwise (the matrix of ISO/IEC 14496-12 §8.3.2). These are all
/// eight ways in which a rectangle lies upright on its sides.
public enum Rotation: UInt16, Sendable, Hashable, CaseIterable {
  /// Shown as it is coded.
  case none = 0
  /// A quarter turn.
  case clockwise90 = 90
  /// Upside down.
  case clockwise180 = 180
  /// Three quarter turns.
  case clockwise270 = 270
  /// Left and right exchanged.
  case mirrored = 1
  /// Mirrored, then a quarter turn.
  case mirrored90 = 91
  /// Mirrored, then upside down: top and bottom exchanged.
  case mirrored180 = 181
  /// Mirrored, then three quarter turns.
  case mirrored270 = 271

  package var isMirrored: Bool { rawValue & 1 == 1 }

  /// Clockwise, after the mirroring.
  package var degrees: UInt16 { rawValue & ~1 }

  /// Width and height are exchanged.
  package var swapsSides: Bool { degrees == 90 || degrees == 270 }

  /// Another one after this one.
  package func followed(by other: Rotation) -> Rotation {
    let own = other.isMirrored ? 360 - degrees : degrees
    return Rotation(rawValue: (own + other.degrees) % 360 | (rawValue ^ other.rawValue) & 1) ?? .none
  }
}

extension Rotation {
  /// The four numbers of the matrix that turn: a point (p, q) goes to (ap + cq, bp + dq), and is then moved into view.
  var matrix: (a: Int32, b: Int32, c: Int32, d: Int32) {
    let turned: (a: Int32, b: Int32, c: Int32, d: Int32) =
      switch degrees {
      case 90: (0, 1, -1, 0)
      case 180: (-1, 0, 0, -1)
      case 270: (0, -1, 1, 0)
      default: (1, 0, 0, 1)
      }
    return isMirrored ? (-turned.a, -turned.b, turned.c, turned.d) : turned
  }

  /// The nearest to these numbers of a matrix; `none` if they turn nothing.
  package init(a: Int32, b: Int32, c: Int32, d: Int32) {
    let isUpright = Int64(a).magnitude + Int64(d).magnitude >= Int64(b).magnitude + Int64(c).magnitude
    self =
      isUpright
      ? (d < 0 ? (a < 0 ? .clockwise180 : .mirrored180) : (a < 0 ? .mirrored : .none))
      : (b < 0 ? (c < 0 ? .mirrored90 : .clockwise270) : (c < 0 ? .clockwise90 : .mirrored270))
  }
}

extension Rotation: CustomStringConvertible {
  /// As settings write it: `0`, `90`, `mirrored`, `mirrored-90`.
  public var description: String {
    if !isMirrored { return String(degrees) }
    return degrees == 0 ? "mirrored" : "mirrored-\(degrees)"
  }
}

/// Gives each video unit a decode time. A PES header without one means that it equals the presentation time (ISO/IEC
/// 13818-1 §2.4.3.7). Some senders leave decode times out although frames are reordered. Then they are derived: the
/// presentation times in rising order, later by as many frames as are reordered. Times are ticks of 90 kHz without wraps.
struct DecodeTimes<Unit> {
  /// A unit with its times.
  struct Placed {
    var presentation: Int64
    var decode: Int64
    var unit: Unit
  }

  private enum Mode {
    /// Holds units until it is known whether decode times are missing.
    case looking([(presentation: Int64, unit: Unit)])
    /// As the sender states them.
    case stated
    /// Presentation times that no unit has as its decode time yet, rising.
    case derived([Int64])
  }

  /// Units that show whether frames are reordered if the stream does not say so.
  private static var usualLook: Int { 8 }
  /// No codec reorders by more frames.
  private static var deepest: Int { 16 }
  /// A step of the presentation time by more than this is a jump of the clock.
  private static var jump: UInt64 { 5 * 90_000 }
  /// Length of a frame at an unknown rate: 25 frames per second.
  private static var usualStep: Int64 { 3600 }

  private var mode: Mode = .looking([])
  private var lastDecode: Int64?
  private var lastPresentation: Int64?
  /// Ticks from frame to frame.
  private var step: Int64?
  /// Units without any time; theirs are continued from the unit before.
  private(set) var untimed = 0
  /// Frames that are decoded before they are shown, as far as it is known.
  private(set) var depth = 0

  /// Takes a unit in decoding order. `reorderDepth` is what its parameter sets say, `frame` the ticks of a frame by
  /// them. Returns the units whose times are known now.
  mutating func receive(
    _ unit: Unit, presentation: Int64?, decode: Int64?, reorderDepth: Int?, frame: Int64?
  ) -> [Placed] {
    step = frame ?? step
    if presentation == nil { untimed &+= 1 }
    switch mode {
    case .stated: return [placeStated(unit, presentation, decode)].compactMap(\.self)
    case .derived(let waiting): return [placeDerived(unit, presentation, waiting)].compactMap(\.self)
    case .looking(var held):
      if decode != nil || reorderDepth == 0 {
        mode = .stated
        let before = held.compactMap { placeStated($0.unit, $0.presentation, nil) }
        return before + [placeStated(unit, presentation, decode)].compactMap(\.self)
      }
      guard let presentation = presentation ?? held.last.map({ $0.presentation &+ (step ?? Self.usualStep) }) else {
        return []
      }
      held.append((presentation, unit))
      let look = reorderDepth.map { $0 &+ 2 } ?? Self.usualLook
      guard held.count >= min(look, MPEGTSLimits.heldUnits) else {
        mode = .looking(held)
        return []
      }
      return decide(held, reorderDepth)
    }
  }

  /// The sum over the units that wait.
  func held(_ size: (Unit) -> Int) -> Int {
    guard case .looking(let held) = mode else { return 0 }
    return held.reduce(0) { $0 &+ size($1.unit) }
  }

  /// The units that still wait, at the end of the stream.
  mutating func finish() -> [Placed] {
    guard case .looking(let held) = mode, !held.isEmpty else { return [] }
    return decide(held, nil)
  }

  private mutating func decide(_ held: [(presentation: Int64, unit: Unit)], _ reorderDepth: Int?) -> [Placed] {
    let times = held.map(\.presentation)
    let observed = times.indices.reduce(0) { deepest, index in
      max(deepest, times[..<index].count { $0 > times[index] })
    }
    guard observed > 0 else {
      mode = .stated
      return held.compactMap { placeStated($0.unit, $0.presentation, nil) }
    }
    let sorted = times.sorted()
    let steps = zip(sorted, sorted.dropFirst()).map { $1 &- $0 }.filter { $0 > 0 }
    step = steps.min() ?? step
    depth = max(reorderDepth ?? 0, observed)
    mode = .derived(lead(before: sorted.first ?? 0))
    return held.compactMap { unit in
      guard case .derived(let waiting) = mode else { return nil }
      return placeDerived(unit.unit, unit.presentation, waiting)
    }
  }

  /// Decode times of the first frames, which precede all presentation times.
  private func lead(before first: Int64) -> [Int64] {
    let step = step ?? Self.usualStep
    return (0..<depth).map { first &- Int64(depth &- $0) &* step }
  }

  private mutating func placeStated(_ unit: Unit, _ presentation: Int64?, _ decode: Int64?) -> Placed? {
    guard let presentation = presentation ?? decode else {
      guard let lastDecode, let lastPresentation else { return nil }
      let step = step ?? Self.usualStep
      return note(unit, lastPresentation &+ step, lastDecode &+ step)
    }
    let time = decode ?? presentation
    // Without decode times, a step back shows that frames are reordered after all.
    // A larger one is a wrong time before it, or a jump.
    let reach = min(UInt64(Self.deepest) &* (step ?? Self.usualStep).magnitude, Self.jump)
    if decode == nil, let lastDecode, let lastPresentation, presentation < lastPresentation, presentation <= lastDecode,
      (presentation &- lastPresentation).magnitude < reach
    {
      depth = max(depth, 1)
      mode = .derived([lastDecode &+ 1])
      return placeDerived(unit, presentation, [lastDecode &+ 1])
    }
    if let lastDecode, decode != nil || step == nil, time > lastDecode, time &- lastDecode < Int64(Self.jump) {
      step = time &- lastDecode
    }
    return note(unit, presentation, time)
  }

  private mutating func placeDerived(_ unit: Unit, _ presentation: Int64?, _ waiting: [Int64]) -> Placed? {
    let presentation = presentation ?? (lastPresentation ?? 0) &+ (step ?? Self.usualStep)
    var waiting = waiting
    if let lastPresentation, (presentation &- lastPresentation).magnitude >= Self.jump {
      waiting = lead(before: presentation)
      lastDecode = nil
    }
    let index = waiting.firstIndex { $0 > presentation } ?? waiting.endIndex
    waiting.insert(presentation, at: index)
    var decode = waiting.removeFirst()
    if let lastDecode, decode <= lastDecode {
      // Frames are reordered by more than was known.
      decode = lastDecode &+ 1
      depth = min(depth &+ 1, Self.deepest)
    }
    mode = .derived(waiting)
    return note(unit, presentation, decode)
  }

  private mutating func note(_ unit: Unit, _ presentation: Int64, _ decode: Int64) -> Placed {
    lastPresentation = presentation
    lastDecode = decode
    return Placed(presentation: presentation, decode: decode, unit: unit)
  }
}

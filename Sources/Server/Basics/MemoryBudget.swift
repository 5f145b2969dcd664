package import Logging
internal import Synchronization

/// What connections may still take of the memory that this process can have: of its control group, or of the machine.
/// When it runs out, new connections are refused, and everybody who is there goes on.
///
/// A connection is charged with what it may come to hold for as long as it is young; after that it shows in what the
/// system counts. Publishers are never asked: what their windows will still need is left aside for them.
package final class MemoryBudget: Sendable {
  /// A connection over plain TCP: objects and a read buffer. Media are sent from where they are.
  package static let plainConnectionBytes = 48 << 10
  /// Over TLS, what was encrypted and not yet taken comes on top (`SocketWriter.tlsWindow`), and the session.
  package static let secureConnectionBytes = 448 << 10
  /// Looks, about half a second apart, during which a connection counts as young.
  private static let youth = 10
  /// Of the memory there is, one part in so many is kept for publishers, recordings and what was not foreseen; within
  /// these bounds in bytes.
  private static let reserveShare = 8
  private static let reserveBounds = 16 << 20...256 << 20

  /// What was charged, and since which look.
  package struct Charge: Sendable, Equatable {
    fileprivate var bytes: Int
    fileprivate var look: Int
  }

  /// Never refuses.
  package static let unlimited = MemoryBudget(sources: nil, logger: Logger(label: "") { _ in SwiftLogNoOpLogHandler() })

  private struct State {
    /// Bytes charged since the last look, and between the looks before it, newest last.
    var charged = 0
    var young: [Int] = []
    var looks = 0
    /// Since the last look.
    var refusals = 0
    var isShort = false
  }

  private let sources: MemorySources?
  private let logger: Logger
  private let state = Mutex(State())
  private let allowance = Atomic<Int>(.max)
  private let tight = Atomic<Bool>(false)

  package convenience init(logger: Logger) {
    self.init(sources: MemorySources(), logger: logger)
  }

  package init(sources: MemorySources?, logger: Logger) {
    self.sources = sources
    self.logger = logger
    look(expectedGrowth: 0)
  }

  /// Less than one part in so many is left: what is sent is to take little of it.
  private static let tightShare = 3
  /// Less than so many bytes in all run short faster than anybody looks.
  private static let little = 2 << 30

  /// There is little memory, or little is left.
  package var isTight: Bool { tight.load(ordering: .relaxed) }

  /// Charges a new connection; nil when there is no room for it.
  package func take(_ bytes: Int) -> Charge? {
    guard sources != nil else { return Charge(bytes: 0, look: 0) }
    guard allowance.wrappingSubtract(bytes, ordering: .relaxed).newValue >= 0 else {
      allowance.wrappingAdd(bytes, ordering: .relaxed)
      state.withLock { $0.refusals += 1 }
      return nil
    }
    return state.withLock { state in
      state.charged += bytes
      return Charge(bytes: bytes, look: state.looks)
    }
  }

  /// What was charged has closed, perhaps still young: who comes and goes takes nothing that others miss.
  package func giveBack(_ charge: Charge) {
    let isYoung = state.withLock { state in
      let age = state.looks - charge.look
      if age == 0 {
        state.charged -= charge.bytes
      } else if age <= state.young.count {
        state.young[state.young.count - age] -= charge.bytes
      }
      return age <= state.young.count
    }
    if isYoung { allowance.wrappingAdd(charge.bytes, ordering: .relaxed) }
  }

  /// Looks how much memory there is. Reads some small files of the kernel's: not for event loops. `expectedGrowth` in
  /// bytes.
  package func look(expectedGrowth: Int) {
    guard let memory = sources?.read() else { return }
    let reserve = min(
      max(memory.limit / Self.reserveShare, Self.reserveBounds.lowerBound), Self.reserveBounds.upperBound)
    let isTight = memory.limit < Self.little || memory.available < memory.limit / Self.tightShare
    tight.store(isTight, ordering: .relaxed)
    let (left, change) = state.withLock { state -> (left: Int, change: Bool?) in
      state.young.append(state.charged)
      state.charged = 0
      state.looks += 1
      if state.young.count > Self.youth { state.young.removeFirst() }
      let left = memory.available - reserve - expectedGrowth - state.young.reduce(0, +)
      allowance.store(max(0, left), ordering: .relaxed)
      let isShort = state.refusals > 0 || left < Self.plainConnectionBytes
      defer {
        state.isShort = isShort
        state.refusals = 0
      }
      return (left, isShort == state.isShort ? nil : isShort)
    }
    guard let change else { return }
    let (available, limit) = (memory.available >> 20, memory.limit >> 20)
    if change {
      logger.warning(
        "memory runs short: \(available) of \(limit) MiB are left; new viewers are refused, those who are there stay")
    } else {
      logger.notice("memory has room for viewers again: \(left >> 20) of \(limit) MiB")
    }
  }
}

package import Logging
internal import Synchronization

/// Limits the memory of connections, from what the control group or the machine has left. When it is used up, new
/// connections are refused and existing ones continue.
///
/// A young connection is charged with the most that it may use. Later, its memory is part of what the system counts.
/// Publishers are never refused: memory that their windows will need is reserved.
package final class MemoryBudget: Sendable {
  /// A connection over plain TCP: objects and a read buffer. Media is sent without a copy.
  package static let plainConnectionBytes = 48 << 10
  /// A TLS connection also holds its session and encrypted bytes that are not sent yet (`SocketWriter.tlsWindow`).
  package static let secureConnectionBytes = 448 << 10
  /// A connection is young during this many measurements, which are about half a second apart.
  private static let measurementsWhileYoung = 10
  /// One part in this many of the memory is reserved for publishers, recordings and the unexpected, within these bounds
  /// (bytes).
  private static let reserveShare = 8
  private static let reserveBounds = 16 << 20...256 << 20

  /// Bytes that are taken to be there where the system does not tell.
  private static let unknownLimit = 1 << 30

  /// The bytes that were charged, and the number of the last measurement before.
  package struct Charge: Sendable, Equatable {
    fileprivate var bytes: Int
    fileprivate var look: Int
  }

  /// A budget without a limit.
  package static let unlimited = MemoryBudget(sources: nil, logger: Logger(label: "") { _ in SwiftLogNoOpLogHandler() })

  private struct State {
    /// Bytes charged since the last measurement, and between earlier measurements (newest last).
    var charged = 0
    var young: [Int] = []
    var looks = 0
    /// Refused connections since the last measurement.
    var refusals = 0
    var isShort = false
  }

  private let sources: MemorySources?
  private let logger: Logger
  private let state = Mutex(State())
  private let allowance = Atomic<Int>(.max)
  /// The memory of the process, in bytes.
  package let limit: Int
  private let tight = Atomic<Bool>(false)

  package convenience init(logger: Logger) {
    self.init(sources: MemorySources(), logger: logger)
  }

  package init(sources: MemorySources?, logger: Logger) {
    self.sources = sources
    self.logger = logger
    limit = sources?.read()?.limit ?? Self.unknownLimit
    look(expectedGrowth: 0)
  }

  /// Memory is tight when less than one part in this many is left. Responses then use less of it.
  private static let tightShare = 3
  /// Bytes. A smaller limit counts as tight: such memory can run out between two measurements.
  private static let smallLimit = 2 << 30

  /// The limit is small, or little memory is left to this process or to TCP.
  package var isTight: Bool { tight.load(ordering: .relaxed) }

  /// Charges a new connection. Nil when there is no room for it.
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

  /// Returns the charge of a closed connection. A connection that closes while it is young leaves no charge behind.
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

  /// Measures the memory. `expectedGrowth` in bytes. Returns the bytes that are missing where half of the reserve is used up, so
  /// that connections must end. Reads small kernel files, so it must not run on an event loop.
  @discardableResult package func look(expectedGrowth: Int) -> Int {
    guard let memory = sources?.read() else { return 0 }
    let reserve = min(
      max(memory.limit / Self.reserveShare, Self.reserveBounds.lowerBound), Self.reserveBounds.upperBound)
    let isTight =
      memory.limit < Self.smallLimit || memory.available < memory.limit / Self.tightShare
      || memory.isTCPUnderPressure
    tight.store(isTight, ordering: .relaxed)
    let (left, change) = state.withLock { state -> (left: Int, change: Bool?) in
      state.young.append(state.charged)
      state.charged = 0
      state.looks += 1
      if state.young.count > Self.measurementsWhileYoung { state.young.removeFirst() }
      let left = memory.available - reserve - expectedGrowth - state.young.reduce(0, +)
      allowance.store(max(0, left), ordering: .relaxed)
      let isShort = state.refusals > 0 || left < Self.plainConnectionBytes
      defer {
        state.isShort = isShort
        state.refusals = 0
      }
      return (left, isShort == state.isShort ? nil : isShort)
    }
    let missing = max(0, reserve / 2 - memory.available)
    guard let change else { return missing }
    let (available, limit) = (memory.available >> 20, memory.limit >> 20)
    if change {
      logger.warning(
        "memory runs short: \(available) of \(limit) MiB are left; new viewers are refused, those who are there stay")
    } else {
      logger.notice("memory has room for viewers again: \(left >> 20) of \(limit) MiB")
    }
    return missing
  }
}

import Glibc
@testable import RecordingFiles
import Synchronization

/// A disk that fails at one of the calls with which a file is written and finished, counted from 1: at that one alone,
/// or from then on, as for a process that was killed there.
final class FailingDisk: Sendable {
  enum Extent: Sendable, CaseIterable {
    case once, forGood
  }

  private let place: Int
  private let error: CInt
  private let extent: Extent
  private let count = Atomic<Int>(0)
  /// What was done, whether it worked or not.
  private let log = Mutex<[String]>([])

  init(failingAt place: Int = .max, _ error: CInt = EIO, _ extent: Extent = .once) {
    self.place = place
    self.error = error
    self.extent = extent
  }

  var done: [String] { log.withLock { $0 } }
  /// It came to the call at which it fails.
  var hasFailed: Bool { count.load(ordering: .relaxed) >= place }

  private func fails(_ call: String) -> Bool {
    log.withLock { $0.append(call) }
    let number = count.add(1, ordering: .relaxed).newValue
    return extent == .once ? number == place : number >= place
  }

  var calls: DiskCalls {
    let system = DiskCalls.system
    return DiskCalls(
      allocate: { file, mode, offset, length in
        self.fails("allocate \(mode)") ? self.error : system.allocate(file, mode, offset, length)
      },
      write: { file, bytes, offset in
        guard self.fails("write \(offset) \(bytes.count)") else { return system.write(file, bytes, offset) }
        // Half of what a disk does not write at once is there.
        if bytes.count > MoovInsertion.sector {
          _ = system.write(file, UnsafeRawBufferPointer(rebasing: bytes.prefix(bytes.count / 2)), offset)
        }
        return -Int(self.error)
      },
      sync: { self.fails("sync") ? self.error : system.sync($0) })
  }
}

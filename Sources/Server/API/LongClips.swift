internal import Basics
internal import FMP4
internal import NIOCore
internal import Storage
internal import Synchronization

/// Memory for long clips. Their moovs take megabytes, and making one reads the headers of thousands of fragments. One is made at
/// a time, so that other requests get a turn on the disk threads. The moovs still being sent are bounded.
final class LongClips: Sendable {
  /// Clips longer than this are long.
  static let shortest = MediaTime(milliseconds: 600_000)
  /// Upper bound for the moovs being sent, in bytes: three of four hours.
  static let maximumBytes = 64 << 20
  /// The same in files, where each moov needs a descriptor of its own.
  private static let maximumFiles = 16

  private let memory: MemoryBudget
  private let store = SegmentStore(name: "weir-clips")
  private let state = Mutex(State())

  fileprivate struct State {
    var isMaking = false
    var heads: [Head] = []
  }

  /// Counts while a response still reads it.
  fileprivate struct Head {
    weak var file: SharedFile?
    var bytes: Int
  }

  init(memory: MemoryBudget) {
    self.memory = memory
  }

  /// Bytes of moovs still being sent.
  var bytes: Int { state.withLock { $0.bytes } }

  /// Runs `make` and puts the moov into memory of its own; nil if there is no room now.
  func make(_ make: () throws -> RecordingClip) throws -> (clip: RecordingClip, head: FileRange)? {
    let mayMake = state.withLock { state in
      guard !state.isMaking, state.bytes < Self.maximumBytes,
        SegmentStore.canShare || state.heads.count < Self.maximumFiles
      else { return false }
      state.isMaking = true
      return true
    }
    guard mayMake else { return nil }
    defer { state.withLock { $0.isMaking = false } }
    let clip = try make()
    guard memory.take(clip.movieHeader.readableBytes) != nil else { return nil }
    var head = try SegmentMemory(in: store)
    let offset = try head.append([clip.movieHeader])
    let range = FileRange(file: head.file, offset: offset, length: clip.movieHeader.readableBytes)
    state.withLock { $0.heads.append(Head(file: range.file, bytes: range.length)) }
    return (clip, range)
  }
}

extension LongClips.State {
  fileprivate var bytes: Int {
    mutating get {
      heads.removeAll { $0.file == nil }
      return heads.reduce(0) { $0 + $1.bytes }
    }
  }
}

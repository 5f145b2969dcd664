internal import Basics
internal import FMP4
internal import NIOCore
internal import Storage
internal import Synchronization

/// Room for clips whose heads take megabytes and whose making takes as long as reading the heads of thousands of
/// fragments. One is made at a time, so that others who wait for the disk's threads get an answer, and the heads of those
/// that nobody has taken yet are bounded.
final class LongClips: Sendable {
  /// A clip that lasts longer is a long one.
  static let shortest = MediaTime(milliseconds: 600_000)
  /// Heads of clips that are being sent, in bytes: three of four hours.
  static let maximumBytes = 64 << 20
  /// The same where each head has a descriptor of its own.
  private static let maximumFiles = 16

  private let memory: MemoryBudget
  private let store = SegmentStore(name: "weir-clips")
  private let state = Mutex(State())

  fileprivate struct State {
    var isMaking = false
    var heads: [Head] = []
  }

  /// Counts for as long as somebody still reads it.
  fileprivate struct Head {
    weak var file: SharedFile?
    var bytes: Int
  }

  init(memory: MemoryBudget) {
    self.memory = memory
  }

  /// Bytes of heads that are still being sent.
  var bytes: Int { state.withLock { $0.bytes } }

  /// What `make` gives, its head in memory of its own; nil when there is no room now.
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
    guard memory.take(clip.head.readableBytes) != nil else { return nil }
    var head = try SegmentMemory(in: store)
    let offset = try head.append([clip.head])
    let range = FileRange(file: head.file, offset: offset, length: clip.head.readableBytes)
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

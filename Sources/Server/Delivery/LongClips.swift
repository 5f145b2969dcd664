package import Base
package import FMP4
internal import NIOCore
package import Recording
package import Storage
internal import Synchronization

/// Memory for long clips. Their moovs take megabytes, and making one reads the headers of thousands of fragments. One is made at
/// a time, so that other requests get a turn on the disk threads. The moovs still being sent are bounded, and fair by address.
package final class LongClips: Sendable {
  /// Clips longer than this are long.
  package static let shortest = MediaTime(milliseconds: 600_000)
  /// Upper bound for the moovs being sent, in bytes: three of four hours.
  static let maximumBytes = 64 << 20
  /// The same in files, where each moov needs a descriptor of its own.
  fileprivate static let maximumFiles = 16

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
    var client: NetworkAddress?
  }

  package init(memory: MemoryBudget) {
    self.memory = memory
  }

  /// Bytes of moovs still being sent.
  var bytes: Int { state.withLock { $0.bytes } }

  /// Runs `make` and puts the moov into memory of its own; nil if there is no room now for the client's address.
  package func make(
    for client: NetworkAddress?, _ make: () throws -> RecordingClip
  ) throws -> (clip: RecordingClip, head: FileRange)? {
    let mayMake = state.withLock { state in
      guard !state.isMaking, state.hasRoom(for: client) else { return false }
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
    state.withLock { $0.heads.append(Head(file: range.file, bytes: range.length, client: client)) }
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

  /// Its first one a client may have as long as there is room at all, and then as much as it leaves to others.
  fileprivate mutating func hasRoom(for client: NetworkAddress?) -> Bool {
    let taken = bytes
    let own = heads.filter { $0.client == client }
    guard taken < LongClips.maximumBytes, SegmentStore.canShare || heads.count < LongClips.maximumFiles
    else { return false }
    return own.isEmpty
      || (FairShare.allows(own: own.reduce(0) { $0 + $1.bytes }, taken: taken, of: LongClips.maximumBytes)
        && (SegmentStore.canShare || FairShare.allows(own: own.count, taken: heads.count, of: LongClips.maximumFiles)))
  }
}

internal import Ingest
internal import Synchronization

/// Bounds the bytes of media that streams keep in memory, each by itself and all together. Where all have too much, those go
/// first that have more than their share.
final class WindowBudget: Sendable {
  /// What a stream may keep at the moment.
  struct Share: Sendable, Hashable {
    /// Bytes of media in its windows.
    var bytes: Int
    /// Bytes at which its growing segment is cut.
    var segmentBytes: Int
  }

  /// A growing segment has at most this part of what its stream may keep.
  private static let segmentShare = 4
  /// A segment may always grow to so many bytes.
  private static let leastSegment = 1 << 20
  /// What has left the windows and is still being sent may have this part of what is for all windows, beside it.
  private static let leftoverShare = 4
  /// Where the kernel does not tell how much memory there is.
  private static let usualMemory = 4 << 30

  /// Bytes of one stream, and of all.
  let perStream: Int
  let inAll: Int
  let leftovers: LeftoverBudget
  private let state = Mutex(State())

  private struct State {
    var used = 0
    var holdings: [StreamName: Int] = [:]
    /// Streams that were asked to keep less and have not told of it yet.
    var asked: Set<StreamName> = []
    /// Lets a stream keep so many bytes.
    var shrink: (@Sendable (StreamName, Int) -> Void)?
  }

  static let unlimited = WindowBudget(perStream: .max / 4, inAll: .max / 4)

  init(perStream: Int, inAll: Int) {
    self.perStream = min(perStream, inAll)
    self.inAll = inAll
    leftovers = LeftoverBudget(limit: inAll / Self.leftoverShare)
  }

  /// By default a stream may keep a quarter of the memory that the process may have, and all of them half of it.
  convenience init(perStream: Int?, inAll: Int?, sources: MemorySources = MemorySources()) {
    let memory = sources.read()?.limit ?? Self.usualMemory
    let all = inAll ?? memory / 2
    self.init(perStream: perStream ?? min(memory / 4, all), inAll: all)
  }

  /// How to let a stream that is idle keep less; called without a lock, and must not wait for the stream.
  func onShortage(_ shrink: @escaping @Sendable (_ stream: StreamName, _ bytes: Int) -> Void) {
    state.withLock { $0.shrink = shrink }
  }

  /// Bytes that all streams keep.
  var used: Int { state.withLock { $0.used } }

  /// A stream keeps so many bytes now. Returns how many it may keep.
  func hold(_ bytes: Int, by stream: StreamName) -> Share {
    let (share, victim, shrink) = state.withLock { state in
      state.used += bytes - (state.holdings.updateValue(bytes, forKey: stream) ?? 0)
      state.asked.remove(stream)
      let fair = inAll / max(1, state.holdings.count)
      var share = Share(bytes: perStream, segmentBytes: segmentBytes(state.used > inAll / 2 ? fair : perStream))
      guard state.used > inAll else { return (share, nil as (name: StreamName, bytes: Int)?, state.shrink) }
      let excess = state.used - inAll
      if bytes > fair {
        share.bytes = min(perStream, max(fair, bytes - excess))
        return (share, nil, state.shrink)
      }
      guard let largest = state.holdings.max(by: { $0.value < $1.value }), largest.value > fair,
        state.asked.insert(largest.key).inserted
      else { return (share, nil, state.shrink) }
      return (share, (largest.key, max(fair, largest.value - excess)), state.shrink)
    }
    if let victim { shrink?(victim.name, victim.bytes) }
    return share
  }

  /// The stream is forgotten.
  func release(_ stream: StreamName) {
    state.withLock { state in
      state.used -= state.holdings.removeValue(forKey: stream) ?? 0
      state.asked.remove(stream)
    }
  }

  private func segmentBytes(_ share: Int) -> Int {
    max(Self.leastSegment, min(share, perStream) / Self.segmentShare)
  }
}

internal import Basics
internal import Ingest
internal import Storage

/// Bounds the bytes of media that streams keep in memory, each by itself and all together. Where all have too much, whoever
/// has most pays. All streams of an address that shows no key have one share: names cost nothing.
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
  /// Who has most cannot always keep less, and not at once: when all keep this part too much, whoever comes with more than
  /// its share pays, too.
  fileprivate static let urgentShare = 16
  /// Where the kernel does not tell how much memory there is.
  private static let usualMemory = 4 << 30

  /// Bytes of one stream, and of all.
  let perStream: Int
  let inAll: Int
  let leftovers: LeftoverBudget
  private let state = RankedMutex(.budget, State())

  /// Who answers for what streams keep.
  fileprivate enum Holder: Hashable {
    /// All publishers of an address that show no key.
    case address(String)
    case stream(StreamName)
  }

  fileprivate struct State {
    var used = 0
    var holdings: [StreamName: (holder: Holder, bytes: Int)] = [:]
    var unfinished: [Holder: (bytes: Int, streams: Int)] = [:]
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

  /// A stream keeps so many bytes now; `address` is its publisher's where that showed no key. Returns how many it may keep.
  func hold(_ bytes: Int, by stream: StreamName, of address: String? = nil) -> Share {
    let holder = address.map(Holder.address) ?? .stream(stream)
    let (share, victim, shrink) = state.withLock { state in
      state.remove(stream)
      state.add(stream, of: holder, bytes)
      state.asked.remove(stream)
      let fair = state.fairShare(of: inAll)
      var share = Share(bytes: perStream, segmentBytes: segmentBytes(perStream))
      if state.used > inAll / 2 { share.segmentBytes = segmentBytes(state.bytes(of: holder) > fair ? 0 : fair) }
      guard let victim = state.whoPays(beyond: inAll, caller: stream) else {
        return (share, nil as (name: StreamName, bytes: Int)?, state.shrink)
      }
      if victim.name == stream {
        share.bytes = min(perStream, victim.bytes)
        return (share, nil, state.shrink)
      }
      return (share, state.asked.insert(victim.name).inserted ? victim : nil, state.shrink)
    }
    if let victim { shrink?(victim.name, victim.bytes) }
    return share
  }

  /// The stream is forgotten.
  func release(_ stream: StreamName) {
    state.withLock { state in
      state.remove(stream)
      state.asked.remove(stream)
    }
  }

  private func segmentBytes(_ share: Int) -> Int {
    max(Self.leastSegment, min(share, perStream) / Self.segmentShare)
  }
}

extension WindowBudget.State {
  mutating func add(_ stream: StreamName, of holder: WindowBudget.Holder, _ bytes: Int) {
    holdings[stream] = (holder, bytes)
    unfinished[holder, default: (0, 0)].bytes += bytes
    unfinished[holder, default: (0, 0)].streams += 1
    used += bytes
  }

  mutating func remove(_ stream: StreamName) {
    guard let (holder, bytes) = holdings.removeValue(forKey: stream), let all = unfinished[holder] else { return }
    unfinished[holder] = all.streams > 1 ? (all.bytes - bytes, all.streams - 1) : nil
    used -= bytes
  }

  func bytes(of holder: WindowBudget.Holder) -> Int { unfinished[holder]?.bytes ?? 0 }

  func fairShare(of limit: Int) -> Int { limit / max(1, unfinished.count) }

  /// The stream that keeps less where all keep more than `limit`, and how many bytes it may keep: one of the holder that has
  /// most, which goes down to its share at most. Of its streams the caller pays where it has more than its part, else the
  /// largest.
  func whoPays(beyond limit: Int, caller: StreamName) -> (name: StreamName, bytes: Int)? {
    let (excess, fair) = (used - limit, fairShare(of: limit))
    guard excess > 0, let own = holdings[caller], let most = unfinished.values.map(\.bytes).max() else { return nil }
    let callers = bytes(of: own.holder)
    let callerPays = callers == most || (callers > fair && excess > limit / WindowBudget.urgentShare)
    guard let holder = callerPays ? own.holder : unfinished.first(where: { $0.value.bytes == most })?.key,
      let all = unfinished[holder], all.bytes > fair
    else { return nil }
    let part = max(fair, all.bytes - excess) / all.streams
    let surplus = min(excess, all.bytes - fair)
    if callerPays, own.bytes > part { return (caller, max(part, own.bytes - surplus)) }
    let largest = holdings.filter { $0.value.holder == holder }.max { $0.value.bytes < $1.value.bytes }
    return largest.map { ($0.key, max(part, $0.value.bytes - surplus)) }
  }
}

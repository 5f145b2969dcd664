package import Base
internal import Publishing
internal import Storage

/// Limits the bytes of media that streams keep in memory, for each stream and in all. When the total is exceeded, the holder
/// with most must reduce. All streams of an address without a key share one allowance, because names are free.
package final class WindowBudget: Sendable {
  /// The current limits of a stream.
  struct Share: Sendable, Hashable {
    /// Bytes of media in its windows.
    var bytes: Int
    /// The size in bytes at which its growing segment is cut.
    var segmentBytes: Int
  }

  /// The growing segment has at most this part of its stream's limit.
  private static let segmentShare = 4
  /// Bytes. A segment may always grow to this size.
  private static let leastSegment = 1 << 20
  /// Segments that left the windows and are still sent may take this part of the limit for all windows, in addition.
  private static let leftoverShare = 4
  /// The holder with most cannot reduce in every case, and not at once. When the total is exceeded by this part, a caller
  /// above its share must reduce, too.
  fileprivate static let urgentShare = 16
  /// Bytes of a stream's media that came too slowly for their length, by default, and the part of its limit that they may take.
  private static let slowMedia = 32 << 20
  private static let slowShare = 2
  /// Bytes; assumed when the kernel does not report the memory.
  private static let usualMemory = 4 << 30

  /// The limits in bytes, for one stream and in all.
  package let perStream: Int
  package let inAll: Int
  let leftovers: LeftoverBudget
  let unfinished: UnfinishedBudget
  /// The most bytes of one stream's media that came too slowly for their length (`MediaArrival`): a clock that stands would
  /// keep all that comes. Without bound where the limit for one stream was set.
  let slowMedia: Int
  private let state = RankedMutex(.budget, State())

  /// The owner of streams for the budget.
  enum Holder: Hashable, Sendable {
    /// All publishers without a key of an address.
    case address(String)
    case stream(StreamName)
  }

  fileprivate struct State {
    var used = 0
    var holdings: [StreamName: (holder: Holder, bytes: Int)] = [:]
    var byHolder: [Holder: (bytes: Int, streams: Int)] = [:]
    /// Streams that were asked to reduce and have not reported since.
    var asked: Set<StreamName> = []
    /// Reduces a stream to this many bytes.
    var shrink: (@Sendable (StreamName, Int) -> Void)?
  }

  package static let unlimited = WindowBudget(perStream: .max / 4, inAll: .max / 4)

  init(perStream: Int, inAll: Int, slowMedia: Int = .max) {
    self.perStream = min(perStream, inAll)
    self.inAll = inAll
    self.slowMedia = slowMedia
    leftovers = LeftoverBudget(limit: inAll / Self.leftoverShare)
    unfinished = UnfinishedBudget(perStream: self.perStream, ofMedia: inAll)
  }

  /// By default, one stream may keep a quarter of the memory of the process, less of slow media, and all
  /// together half of it.
  package convenience init(perStream: Int?, inAll: Int?, sources: MemorySources = MemorySources()) {
    let memory = sources.read()?.limit ?? Self.usualMemory
    let all = inAll ?? memory / 2
    let quarter = min(memory / 4, all)
    self.init(
      perStream: perStream ?? quarter, inAll: all,
      slowMedia: perStream == nil ? min(Self.slowMedia, quarter / Self.slowShare) : .max)
  }

  /// Sets the closure that reduces an idle stream. It is called without a lock, and must not wait for the stream.
  func onShortage(_ shrink: @escaping @Sendable (_ stream: StreamName, _ bytes: Int) -> Void) {
    state.withLock { $0.shrink = shrink }
  }

  /// Bytes of all streams.
  var used: Int { state.withLock { $0.used } }

  /// Sets the bytes of a stream. `address` is its publisher's when that has no key. Returns the stream's limits.
  func hold(_ bytes: Int, by stream: StreamName, of address: String? = nil) -> Share {
    let holder = address.map(Holder.address) ?? .stream(stream)
    let (share, victim, shrink) = state.withLock { state in
      state.remove(stream)
      state.add(stream, of: holder, bytes)
      state.asked.remove(stream)
      let fair = state.fairShare(of: inAll)
      var share = Share(bytes: perStream, segmentBytes: segmentBytes(perStream))
      if state.used > inAll / 2 { share.segmentBytes = segmentBytes(state.bytes(of: holder) > fair ? 0 : fair) }
      guard let victim = state.streamToShrink(beyond: inAll, caller: stream) else {
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

  /// Sets the bytes of a stream that has reported before, and has fewer now.
  func reduce(_ stream: StreamName, to bytes: Int) {
    state.withLock { state in
      guard let holder = state.holdings[stream]?.holder else { return }
      state.remove(stream)
      state.add(stream, of: holder, bytes)
    }
  }

  /// Removes a stream.
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
    byHolder[holder, default: (0, 0)].bytes += bytes
    byHolder[holder, default: (0, 0)].streams += 1
    used += bytes
  }

  mutating func remove(_ stream: StreamName) {
    guard let (holder, bytes) = holdings.removeValue(forKey: stream), let all = byHolder[holder] else { return }
    byHolder[holder] = all.streams > 1 ? (all.bytes - bytes, all.streams - 1) : nil
    used -= bytes
  }

  func bytes(of holder: WindowBudget.Holder) -> Int { byHolder[holder]?.bytes ?? 0 }

  func fairShare(of limit: Int) -> Int { limit / max(1, byHolder.count) }

  /// The stream that must reduce when all exceed `limit`, and its new size in bytes. It belongs to the holder with most, which
  /// reduces to its share at the lowest. Of that holder's streams it is the caller's, if that exceeds its part; else the
  /// largest.
  func streamToShrink(beyond limit: Int, caller: StreamName) -> (name: StreamName, bytes: Int)? {
    let (excess, fair) = (used - limit, fairShare(of: limit))
    guard excess > 0, let own = holdings[caller], let most = byHolder.values.map(\.bytes).max() else { return nil }
    let callers = bytes(of: own.holder)
    let callerReduces = callers == most || (callers > fair && excess > limit / WindowBudget.urgentShare)
    guard let holder = callerReduces ? own.holder : byHolder.first(where: { $0.value.bytes == most })?.key,
      let all = byHolder[holder], all.bytes > fair
    else { return nil }
    let part = max(fair, all.bytes - excess) / all.streams
    let surplus = min(excess, all.bytes - fair)
    if callerReduces, own.bytes > part { return (caller, max(part, own.bytes - surplus)) }
    let largest = holdings.filter { $0.value.holder == holder }.max { $0.value.bytes < $1.value.bytes }
    return largest.map { ($0.key, max(part, $0.value.bytes - surplus)) }
  }
}

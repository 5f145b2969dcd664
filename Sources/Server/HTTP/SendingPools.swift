internal import Base
internal import NIOCore
internal import NIOPosix
internal import Storage

/// What connections share while they send: memory for bytes that are on their way to a socket and for responses of one client,
/// and turns at a disk.
final class SendingPools: Sendable {
  /// One part in this many of the memory is for bytes on their way, and at least this many bytes.
  private static let memoryShare = 8
  private static let leastMemory = 4 << 20
  /// Fewest bytes that a connection gets, unless it wants fewer.
  private static let leastBytes = 16 * 1024
  /// One part in this many of the memory is for responses that were made for one client, and at least `leastMemory`.
  private static let responseShare = 16
  /// Reads and sends of files on disk at a time, and one part in this many of the descriptors: each may have one of its own.
  private static let diskTurns = 32
  private static let descriptorShare = 64

  /// Bytes that were read from a disk, or that TLS encrypts, and that their sockets have not taken.
  let memory: FairPool
  /// Bytes of responses that were made for one client and that it has not taken: text of the API, movie headers of clips.
  let responses: FairPool
  /// The most bytes that one of them counts for.
  let responseLimit: Int
  let disk: FairPool
  /// The threads that wait for disks.
  let threads: NIOThreadPool

  /// `limit` is the memory of the process, in bytes; `descriptors` is how many it may have.
  init(limit: Int, descriptors: Int = .max, threads: NIOThreadPool) {
    memory = FairPool(limit: max(Self.leastMemory, limit / Self.memoryShare), least: Self.leastBytes)
    responseLimit = max(Self.leastMemory, limit / Self.responseShare)
    responses = FairPool(limit: responseLimit, least: Self.leastBytes)
    disk = FairPool(limit: max(1, min(Self.diskTurns, descriptors / Self.descriptorShare)), least: 1)
    self.threads = threads
  }

  /// The reason in the log for the end of a connection.
  static let reason = "it took nothing for long of what waits in memory for it, and others wait for that memory"

  /// Call twice a second.
  func look() {
    memory.look()
    responses.look()
  }
}

extension FairPool.Member {
  /// Takes up to `wanted` units. Nil if there are too few: then `grant` is called on `eventLoop`, on which this is called.
  func take(
    _ wanted: Int, on eventLoop: any EventLoop, orLater grant: @escaping (Int) -> Void
  ) -> Int? {
    let bound = NIOLoopBound(grant, eventLoop: eventLoop)
    return take(wanted) { count in eventLoop.execute { bound.value(count) } }
  }
}

extension [BodyPiece] {
  /// Bytes in memory that were made for one client, and the position behind the last of them in the body. Media of files in memory
  /// are shared, and so is what stands between them.
  var own: (bytes: Int, end: Int) {
    var (bytes, end, position) = (0, 0, 0)
    for piece in self {
      position &+= piece.length
      switch piece {
      case .bytes(let buffer): (bytes, end) = (bytes &+ buffer.readableBytes, position)
      case .file(let range): if range.file.kind == .memory { return (0, 0) }
      }
    }
    return (bytes, end)
  }
}

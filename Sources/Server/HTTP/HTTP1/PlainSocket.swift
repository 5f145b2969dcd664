internal import Glibc
internal import NIOCore
internal import Storage

/// A plain TCP socket that is written to beside NIO, by the system's own calls. Used only while the channel is active.
struct PlainSocket {
  /// Ranges of memory files of at least this many bytes are sent by `sendfile`. Below it both cost the same for a
  /// range alone (measured from 64 KiB to 512 KiB), and a call and a push per range are saved where there are many.
  static let sendfileThreshold = 256 * 1024
  /// Pieces of one `sendmsg`.
  static let vectorCount = 64

  /// What became of a call.
  enum Result {
    /// Fewer than were wanted: the socket is full.
    case sent(Int, wanted: Int)
    case full
    case failed(String)
  }

  let descriptor: CInt

  /// Sends what the socket takes at once of `bytes`; 0 or less where it takes nothing.
  func send(_ bytes: ByteBuffer) -> Int {
    bytes.withUnsafeReadableBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
  }

  /// Sends what the socket takes of the front of `queue`, which is not empty, at most `limit` bytes of a large range.
  func send(_ queue: PieceQueue, limit: Int) -> Result {
    let sent: Int
    let wanted: Int
    if case .file(let range) = queue.first, queue.first.map(isSmall) == false {
      var offset = off_t(range.position)
      wanted = min(range.length, limit)
      sent = sendfile(descriptor, range.file.descriptor, &offset, wanted)
      if sent == 0 { return .failed(PieceQueue.BrokenFile(range: range).description) }
    } else {
      (sent, wanted) = sendVectors(queue)
    }
    if sent >= 0 { return .sent(sent, wanted: wanted) }
    switch errno {
    case EAGAIN, EINTR: return .full
    default: return .failed("writing failed (errno \(errno))")
    }
  }

  /// Whether the piece is sent by `sendmsg`.
  private func isSmall(_ piece: BodyPiece) -> Bool {
    switch piece {
    case .bytes: true
    case .file(let range): range.length < Self.sendfileThreshold && range.file.kernelAddress(of: range) != nil
    }
  }

  /// Sends what the socket takes of the pieces at the front of the queue, up to the first that has to be sent
  /// otherwise; returns the bytes sent, or -1, and those there were.
  private func sendVectors(_ queue: PieceQueue) -> (sent: Int, wanted: Int) {
    withUnsafeTemporaryAllocation(of: iovec.self, capacity: Self.vectorCount) { vectors in
      var count = 0
      var wanted = 0
      for piece in queue.pieces {
        guard count < Self.vectorCount, isSmall(piece) else { break }
        // The queue keeps the pieces, and they their bytes, until they have been consumed.
        switch piece {
        case .bytes(let bytes):
          bytes.withUnsafeReadableBytes { vectors[count] = iovec($0.baseAddress, $0.count) }
        case .file(let range):
          vectors[count] = iovec(range.file.kernelAddress(of: range), range.length)
        }
        wanted &+= piece.length
        count += 1
      }
      var message = msghdr()
      message.msg_iov = vectors.baseAddress
      message.msg_iovlen = count
      let more = queue.count > count ? CInt(MSG_MORE) : 0
      return (sendmsg(descriptor, &message, CInt(MSG_NOSIGNAL) | more), wanted)
    }
  }

  /// Lets the close throw away what the kernel holds for a peer that does not read, instead of keeping it for minutes.
  func resetOnClose() {
    var linger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
  }

  /// Whether the kernel still holds bytes that the peer has not taken.
  var holdsBytes: Bool {
    var count: CInt = 0
    return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 && count > 0
  }

  /// Keeps what the kernel takes beyond what is on its way to `bytes`.
  func limitUnsent(_ bytes: Int) {
    var bytes = CInt(clamping: bytes)
    setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &bytes, socklen_t(MemoryLayout<CInt>.size))
  }
}

extension iovec {
  /// `sendmsg` only reads.
  fileprivate init(_ base: UnsafeRawPointer?, _ count: Int) {
    self.init(iov_base: UnsafeMutableRawPointer(mutating: base), iov_len: count)
  }
}

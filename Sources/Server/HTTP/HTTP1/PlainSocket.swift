internal import Glibc
internal import NIOCore
internal import Storage

/// A plain TCP socket that is written with system calls, beside NIO. Used only while the channel is active.
struct PlainSocket {
  /// Ranges of memory files of at least this size are sent with `sendfile`. Below it, both ways cost the same for one range
  /// (measured from 64 KiB to 512 KiB), and `sendmsg` saves a call and a push per range when there are many.
  static let sendfileThreshold = 256 * 1024
  /// The most pieces of one `sendmsg`.
  static let vectorCount = 64

  /// The result of a call.
  enum Result {
    /// A number below `wanted` means that the socket is full.
    case sent(Int, wanted: Int)
    case full
    case failed(String)
  }

  let descriptor: CInt

  /// Sends as many of the bytes as the socket takes at once. Returns 0 or less when it takes none.
  func send(_ bytes: ByteBuffer) -> Int {
    bytes.withUnsafeReadableBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
  }

  /// Sends pieces from the front of `queue`, which is not empty; at most `limit` bytes of a large range.
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

  /// Whether the piece is sent with `sendmsg`.
  private func isSmall(_ piece: BodyPiece) -> Bool {
    switch piece {
    case .bytes: true
    case .file(let range): range.length < Self.sendfileThreshold && range.file.kernelAddress(of: range) != nil
    }
  }

  /// Sends pieces from the front of the queue with one `sendmsg`, up to the first that needs `sendfile`. Returns the bytes sent,
  /// or -1, and the bytes of these pieces.
  private func sendVectors(_ queue: PieceQueue) -> (sent: Int, wanted: Int) {
    withUnsafeTemporaryAllocation(of: iovec.self, capacity: Self.vectorCount) { vectors in
      var count = 0
      var wanted = 0
      for piece in queue.pieces {
        guard count < Self.vectorCount, isSmall(piece) else { break }
        // The queue holds the pieces, and they hold their bytes, until they are consumed.
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

  /// The outcome of sending from a file on disk.
  enum DiskResult: Sendable {
    /// Bytes that the socket took, and those that come next if it is full.
    case sent(Int, wake: ByteBuffer)
    case failed(String)
  }

  /// The same socket with another descriptor, which must be closed. Nil if there is none.
  func duplicate() -> PlainSocket? {
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    return copy < 0 ? nil : PlainSocket(descriptor: copy)
  }

  func close() { Glibc.close(descriptor) }

  /// Sends up to `limit` bytes of a file on disk whose bytes do not move. Reads the next `wake` bytes where the socket is full.
  /// Waits for the disk, so it must not run on an event loop.
  func send(_ range: FileRange, limit: Int, wake: Int) -> DiskResult {
    var place = off_t(range.position &+ (range.file.origin?.shift ?? 0))
    let wanted = min(range.length, limit)
    var done = 0
    while done < wanted {
      let sent = sendfile(descriptor, range.file.descriptor, &place, wanted &- done)
      if sent > 0 {
        done &+= sent
      } else if sent < 0, errno == EAGAIN {
        let read = range.file.read(at: range.offset &+ done, count: min(wake, range.length &- done))
        guard case .read(let bytes) = read, bytes.readableBytes > 0 else {
          return .failed(PieceQueue.BrokenFile(range: range).description)
        }
        return .sent(done, wake: bytes)
      } else if sent == 0 || errno != EINTR {
        return .failed(sent == 0 ? PieceQueue.BrokenFile(range: range).description : "writing failed (errno \(errno))")
      }
    }
    return .sent(done, wake: ByteBuffer())
  }

  /// Makes the close discard the bytes of a client that does not read. The kernel would keep them for minutes.
  func resetOnClose() {
    var linger = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<linger>.size))
  }

  /// Whether the kernel still holds bytes that the client has not taken.
  var holdsBytes: Bool {
    var count: CInt = 0
    return ioctl(descriptor, UInt(TIOCOUTQ), &count) == 0 && count > 0
  }

  /// Limits the bytes in the kernel that are not sent yet.
  func limitUnsent(_ bytes: Int) {
    var bytes = CInt(clamping: bytes)
    setsockopt(descriptor, CInt(IPPROTO_TCP), TCP_NOTSENT_LOWAT, &bytes, socklen_t(MemoryLayout<CInt>.size))
  }
}

extension iovec {
  /// `sendmsg` only reads the bytes.
  fileprivate init(_ base: UnsafeRawPointer?, _ count: Int) {
    self.init(iov_base: UnsafeMutableRawPointer(mutating: base), iov_len: count)
  }
}

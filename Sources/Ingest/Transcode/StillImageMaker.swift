package import Base
package import FMP4
internal import Glibc
package import NIOCore

/// Makes JPEGs of untrusted key frames, each in its own worker process. The caller decides how many run at once: the
/// server has one thread for live streams and one for recordings.
package struct StillImageMaker: Sendable {
  /// Most bytes of a key frame.
  package static let largestSample = TranscodeLimits.stillSampleBytes
  /// Most bytes of a JPEG.
  package static let largestJPEG = TranscodeLimits.stillBytes

  private let launcher: WorkerLauncher
  private let patience: Int64

  package init(launcher: WorkerLauncher) {
    self.init(launcher: launcher, patience: TranscodeLimits.stillPatience)
  }

  /// - Parameter patience: time limit of a worker, in nanoseconds.
  init(launcher: WorkerLauncher, patience: Int64) {
    self.launcher = launcher
    self.patience = patience
  }

  /// Makes a JPEG of `sample`, a sync sample as stored by the track. It has square pixels and is upright by the track's
  /// rotation. Blocks up to the worker's time limit, so never call it on an event loop. The worker has ended when this
  /// returns. Throws if the bytes are not a frame of that codec or the frame is too large. Also throws if the worker
  /// crashes, is late, or breaks the protocol.
  package func jpeg(of sample: ByteBuffer, track: TrackDescription) throws(StillImageError) -> ByteBuffer {
    let request = TranscodeWire.encode(.still(try StillImageRequest(of: sample, track: track)))
    let worker: RunningWorker
    do throws(WorkerFailure) {
      worker = try launcher.start()
    } catch {
      throw StillImageError(.machine, error.description)
    }
    do throws(StillImageFailure) {
      let jpeg = try exchange(request, over: worker.socket)
      _ = worker.end()
      return jpeg
    } catch {
      let ending = worker.end()
      switch error {
      case .refused(let reason): throw StillImageError(.sample, reason)
      case .nonsense(let what): throw StillImageError(.sample, "its worker does not keep to the protocol: \(what)")
      case .late: throw StillImageError(.sample, "its worker has not made it in \(patience / 1_000_000) ms")
      case .gone: throw StillImageError(.sample, "its worker is gone (\(ending))")
      }
    }
  }

  private func exchange(_ request: ByteBuffer, over socket: Int32) throws(StillImageFailure) -> ByteBuffer {
    let end = MonotonicTime.now() &+ patience
    var outgoing = request
    // Limits the worker's messages before they are buffered. The longest is a JPEG.
    var reader = TranscodeFrameReader(limit: TranscodeLimits.stillBytes + 1)
    let chunk = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
    defer { chunk.deallocate() }
    while true {
      let left = end &- .now()
      guard left > 0 else { throw .late }
      let events = Int16(outgoing.readableBytes > 0 ? POLLIN | POLLOUT : POLLIN)
      var interest = pollfd(fd: socket, events: events, revents: 0)
      guard poll(&interest, 1, Int32(clamping: left / 1_000_000 + 1)) > 0 else { continue }
      send(&outgoing, over: socket)
      let count = recv(socket, chunk.baseAddress, chunk.count, Int32(MSG_DONTWAIT))
      if count < 0, errno == EAGAIN || errno == EINTR { continue }
      guard count > 0 else { throw .gone }
      reader.append(UnsafeRawBufferPointer(rebasing: chunk[..<count]))
      if let jpeg = try answer(&reader) { return jpeg }
    }
  }

  /// Sends as much as possible without blocking. If sending fails, the worker has reported why or has ended; `recv`
  /// shows which.
  private func send(_ outgoing: inout ByteBuffer, over socket: Int32) {
    guard outgoing.readableBytes > 0 else { return }
    let count = outgoing.withUnsafeReadableBytes { bytes in
      Glibc.send(socket, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    }
    if count > 0 {
      outgoing.moveReaderIndex(forwardBy: count)
    } else if errno != EAGAIN, errno != EINTR {
      outgoing.clear()
    }
  }

  /// The worker's reply. Nil while it is incomplete.
  private func answer(_ reader: inout TranscodeFrameReader) throws(StillImageFailure) -> ByteBuffer? {
    let reply: TranscodeReply
    do throws(TranscodeProtocolError) {
      guard let (type, body) = try reader.next() else { return nil }
      reply = try TranscodeWire.reply(type, body)
    } catch {
      throw .nonsense(error.description)
    }
    switch reply {
    case .still(let jpeg):
      guard jpeg.readableBytesView.starts(with: [0xFF, 0xD8, 0xFF]) else {
        throw .nonsense("a reply that is not a JPEG")
      }
      return jpeg
    case .failed(let reason): throw .refused(reason)
    case .track, .frame, .consumed, .drained: throw .nonsense("a reply without a request")
    }
  }
}

/// How a worker failed.
private enum StillImageFailure: Error {
  case refused(String)
  case nonsense(String)
  case late
  case gone
}

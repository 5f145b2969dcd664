import Base
import Glibc
import NIOCore
import Synchronization
@testable import Transcode

/// A worker that is a thread of the test, and the other end of its socket.
final class WorkerThread: Sendable {
  let socket: Int32
  private let isClosed = Mutex(false)

  /// `work` has the worker's end; nil for a real worker.
  init(_ work: (@Sendable (Int32) -> Void)? = nil) throws {
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else {
      throw WorkerFailure("socketpair", errno)
    }
    let other = ends[1]
    socket = ends[0]
    try DedicatedThread.start(named: "worker") {
      if let work { work(other) } else { TranscodeWorker(descriptor: other).run() }
      close(other)
    }
  }

  func end() {
    isClosed.withLock { isClosed in
      if !isClosed { close(socket) }
      isClosed = true
    }
  }

  /// Workers of this kind, for a transcoder.
  static func launcher(_ work: (@Sendable (Int32) -> Void)? = nil) -> WorkerLauncher {
    WorkerLauncher { () throws(WorkerFailure) in
      let worker: WorkerThread
      do { worker = try WorkerThread(work) } catch { throw WorkerFailure("\(error)", 0) }
      return RunningWorker(socket: worker.socket, processID: nil) {
        shutdown(worker.socket, Int32(SHUT_RDWR))
        worker.end()
        return "it was told to"
      }
    }
  }

  /// Sends requests, and gives what comes back up to the answer to the last `drain`, or to the end. Waits on threads of
  /// its own.
  func exchange(_ requests: [TranscodeRequest]) async throws -> [TranscodeReply] {
    let drains = requests.count { $0 == .drain }
    let replies = Mutex<[TranscodeReply]>([])
    async let sending: Void = DedicatedThread.run(named: "sender") { [socket] in
      for request in requests {
        let bytes = Array(TranscodeWire.encode(request).readableBytesView)
        var done = 0
        while done < bytes.count {
          let count = send(socket, Array(bytes[done...]), bytes.count - done, Int32(MSG_NOSIGNAL))
          guard count > 0 else { return }
          done += count
        }
      }
    }
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      do {
        try DedicatedThread.start(named: "receiver") { [socket] in
          var reader = TranscodeFrameReader()
          var bytes = [UInt8](repeating: 0, count: 65_536)
          var answered = 0
          while answered < drains {
            let count = recv(socket, &bytes, bytes.count, 0)
            guard count > 0 else { break }
            bytes.withUnsafeBytes { reader.append(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            while let frame = try? reader.next(), let reply = try? TranscodeWire.reply(frame.type, frame.body) {
              replies.withLock { $0.append(reply) }
              if reply == .drained { answered += 1 }
            }
          }
          continuation.resume()
        }
      } catch {
        continuation.resume(throwing: error)
      }
    }
    try await sending
    return replies.withLock { $0 }
  }
}

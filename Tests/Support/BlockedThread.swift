package import Base
internal import Glibc
internal import Testing

/// Keeps a pool's only thread busy until what is returned is called.
package func blockThread(of thread: any WorkThreads) throws -> @Sendable () -> Void {
  var ends: [CInt] = [0, 0]
  try #require(pipe(&ends) == 0)
  let (reading, writing) = (ends[0], ends[1])
  thread.submit { _ in
    var byte: UInt8 = 0
    _ = read(reading, &byte, 1)
    close(reading)
  }
  return { close(writing) }
}

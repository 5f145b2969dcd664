internal import Glibc

/// A system call on a file failed.
package struct StorageError: Error, Sendable, CustomStringConvertible {
  let operation: String
  package let errno: Int32

  package init(operation: String, errno: Int32) {
    self.operation = operation
    self.errno = errno
  }

  package var description: String { "\(operation) failed: \(String(cString: strerror(errno))) (errno \(errno))" }
}

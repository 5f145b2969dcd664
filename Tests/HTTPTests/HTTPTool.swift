import Glibc
import Testing

/// Runs a program with `input` as its standard input, and returns what it writes. For tools that end by themselves at
/// once; input and output go through unlinked files, so that neither side waits for a full pipe.
func runTool(_ arguments: [String], input: [UInt8] = []) throws -> [UInt8] {
  let source = try temporaryFile()
  let sink = try temporaryFile()
  defer {
    close(source)
    close(sink)
  }
  _ = input.withUnsafeBytes { pwrite(source, $0.baseAddress, $0.count, 0) }
  var actions = posix_spawn_file_actions_t()
  posix_spawn_file_actions_init(&actions)
  defer { posix_spawn_file_actions_destroy(&actions) }
  posix_spawn_file_actions_adddup2(&actions, source, 0)
  posix_spawn_file_actions_adddup2(&actions, sink, 1)
  var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
  defer { for word in words { free(word) } }
  words.append(nil)
  var process = pid_t()
  try #require(posix_spawn(&process, arguments[0], &actions, nil, words, environ) == 0)
  var status: CInt = 0
  try #require(waitpid(process, &status, 0) == process)
  try #require(status == 0, "\(arguments) failed")
  var output = [UInt8](repeating: 0, count: Int(lseek(sink, 0, SEEK_END)))
  let count = output.withUnsafeMutableBytes { pread(sink, $0.baseAddress, $0.count, 0) }
  try #require(count == output.count)
  return output
}

private func temporaryFile() throws -> CInt {
  let descriptor = memfd_create("tool", UInt32(MFD_CLOEXEC))
  try #require(descriptor >= 0)
  return descriptor
}

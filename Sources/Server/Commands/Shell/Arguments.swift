internal import Glibc

/// The arguments and the environment of the process.
enum Arguments {
  /// The arguments without the program's name. `CommandLine.arguments` is empty if a library called setenv before main
  /// (swift#76080, seen under libfaketime); the kernel's copy has them then.
  static func ofProcess() -> [String] {
    let arguments = CommandLine.arguments
    return Array((arguments.isEmpty ? kernelCopy() : arguments).dropFirst())
  }

  /// The arguments in /proc/self/cmdline, each ended by a zero byte; empty without procfs.
  static func kernelCopy() -> [String] {
    let descriptor = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(descriptor, &chunk, chunk.count)
      guard count > 0 else { break }
      bytes += chunk[..<count]
    }
    return split(bytes)
  }

  /// Splits texts that each end in a zero byte; empty texts count.
  static func split(_ bytes: [UInt8]) -> [String] {
    bytes.split(separator: 0, omittingEmptySubsequences: false).dropLast().map { String(decoding: $0, as: UTF8.self) }
  }

  /// The same words with each number below zero joined to its flag, `--max-viewers=-3`: the parser takes what begins with a dash
  /// for a flag, and would miss the value that it refuses.
  static func joiningNumbers(_ arguments: [String]) -> [String] {
    var words: [String] = []
    for (index, word) in arguments.enumerated() {
      if word == "--" { return words + arguments[index...] }
      let isNumber = word.first == "-" && word.dropFirst().first?.isNumber == true
      if isNumber, let flag = words.last, flag.hasPrefix("--"), !flag.contains("=") {
        words[words.count - 1] = "\(flag)=\(word)"
      } else {
        words.append(word)
      }
    }
    return words
  }

  /// The environment. If a name occurs twice, the first counts, as for getenv.
  static func environment() -> [String: String] {
    var result: [String: String] = [:]
    var entry = environ
    while let text = entry.pointee {
      let parts = String(cString: text).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      if parts.count == 2, result[String(parts[0])] == nil { result[String(parts[0])] = String(parts[1]) }
      entry += 1
    }
    return result
  }
}

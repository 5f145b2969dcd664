package import Logging
package import Publishing

extension Logger {
  /// A logger that names the stream in each line: before the message in text, as a field in JSON.
  package func of(_ stream: StreamName) -> Logger {
    var logger = self
    logger[metadataKey: "stream"] = "\(stream)"
    return logger
  }
}

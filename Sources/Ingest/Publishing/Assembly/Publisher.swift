internal import FMP4
package import Logging
package import NIOCore

/// The publisher of a connection, as needed by the gate and the log.
package struct Publisher {
  /// As in `PublishRequest`.
  package let protocolName: String
  package let remoteAddress: String
  package let host: String?
  /// The address of the listener that accepted the connection; nil if it has none of its own.
  package var localAddress: SocketAddress?
  package let gate: any PublishGate
  package let logger: Logger
  package var credential = PublishRequest.Credential.asConfigured

  package init(
    protocolName: String, remoteAddress: String, host: String?, localAddress: SocketAddress? = nil,
    gate: any PublishGate, logger: Logger,
    credential: PublishRequest.Credential = .asConfigured
  ) {
    (self.protocolName, self.remoteAddress, self.host, self.localAddress, self.gate) = (
      protocolName, remoteAddress, host, localAddress, gate
    )
    (self.logger, self.credential) = (logger, credential)
  }

  package func metadata(of stream: StreamName?) -> Logger.Metadata {
    var metadata: Logger.Metadata = ["remote": "\(remoteAddress)"]
    if let stream { metadata["stream"] = "\(stream)" }
    return metadata
  }

  /// The request to the gate.
  func request(
    _ stream: StreamName, key: Secret?, software: String, keyFrames: PublishRequest.KeyFrames = .asItsEncoderHasThem,
    connection: PublishRequest.Connection = .made, onKeyFrameWanted: (@Sendable () -> Void)? = nil,
    onEviction: @escaping @Sendable (EndReason) -> Void
  ) -> PublishRequest {
    var request = PublishRequest(
      stream: stream, key: key, protocolName: protocolName, remoteAddress: remoteAddress, host: host,
      software: software, keyFrames: keyFrames, connection: connection, onKeyFrameWanted: onKeyFrameWanted,
      onEviction: onEviction)
    request.credential = credential
    return request
  }

  /// Logs the end of a publication.
  func tellEnd(of stream: StreamName, _ reason: EndReason) {
    let level: Logger.Level
    if case .failed(let why) = reason {
      noteRefusal(of: stream, why)
      level = .warning
    } else {
      level = .notice
    }
    logger.log(level: level, "ended: \(reason.text)", metadata: metadata(of: stream))
  }

  /// Reports a refusal to the gate, so that its reason can be shown later. `publicReason` is what everybody may read of it; all
  /// if nil.
  package func noteRefusal(of stream: StreamName?, _ reason: String, publicReason: String? = nil) {
    gate.note(
      RefusedPublication(
        stream: stream?.description, protocolName: protocolName, remoteAddress: remoteAddress, host: host,
        reason: reason, publicReason: publicReason ?? reason))
  }
}

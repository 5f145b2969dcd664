/// The ports for publishers, which the pages tell; nil for a protocol that is off.
struct PublisherPorts: Sendable {
  let rtmp: Int?
  let rtmps: Int?
  let srt: Int?
  let webRTC: Int?
}

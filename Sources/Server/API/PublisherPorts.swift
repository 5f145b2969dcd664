/// The ports for publishers, which the pages tell; nil for a protocol that is off.
package struct PublisherPorts: Sendable {
  let rtmp: Int?
  let rtmps: Int?
  let srt: Int?
  let webRTC: Int?

  package init(rtmp: Int?, rtmps: Int?, srt: Int?, webRTC: Int?) {
    (self.rtmp, self.rtmps, self.srt, self.webRTC) = (rtmp, rtmps, srt, webRTC)
  }
}

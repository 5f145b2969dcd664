internal import Answers
internal import ArgumentParser
internal import LibAV
internal import Local
internal import NIOCore

/// `weir devices`: lists the devices and encoders of this machine.
struct DevicesCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "devices", abstract: "List cameras, microphones and encoders.",
    discussion: """
      Examples:
        weir devices
        weir devices --json

      A source names them: weir serve --source cam=v4l2:/dev/video0,alsa:hw:0,0
      """)

  @Flag(help: "Print JSON instead of text.") var json = false

  func run() {
    let (cameras, microphones) = (CameraCatalogue.list(), MicrophoneCatalogue.list())
    let encoders = EncoderCatalogue.list()
    if json {
      let answer = DevicesAnswer(cameras: cameras, microphones: microphones)
      print(String(buffer: answer.json(with: encoders)))
    } else {
      print(Devices(cameras: cameras, microphones: microphones, encoders: encoders).text)
    }
  }
}

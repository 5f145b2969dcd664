internal import ArgumentParser
internal import Local
internal import Settings

/// `weir capture`: a server with one camera and one microphone, and its page.
struct CaptureCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "capture", abstract: "A camera and a microphone of this machine, live at once.",
    usage: "weir capture [<options>]",
    discussion: """
      Examples:
        weir capture
            The first camera and the default microphone, watched in the browser
        weir capture --camera '/dev/video2?size=1920x1080&fps=30' --microphone none
        weir capture --record recordings
            Recorded from the first frame on; without --record on request
        weir capture --off-air --admin-token TOKEN
            Captured for a preview, and recorded on request; live when it is asked to

      Everything that weir serve takes can be given as well; weir devices lists
      what there is, docs/capture.md the options of a device.
      """)

  @Option(help: ArgumentHelp("Camera, with its options; auto takes the first.", valueName: "device|auto|none"))
  var camera = "auto"
  @Option(help: ArgumentHelp("Microphone, with its options; auto takes ALSA's default.", valueName: "device|auto|none"))
  var microphone = "auto"
  @Option(help: ArgumentHelp("The stream's name.", valueName: "name")) var name = "cam"
  @Flag(help: "Leave the browser alone.") var noOpen = false
  @OptionGroup var server: ServeCommand

  func run() async throws {
    var flags = server.settings.given
    let devices = [cameraPart, microphonePart].compactMap(\.self)
    guard !devices.isEmpty else {
      throw ConfigurationError(
        .configuration,
        "there is no camera and no microphone; plug one in, or name it: weir capture --camera /dev/video0")
    }
    flags["source"] = ["\(name)=\(devices.joined(separator: ","))"] + (flags["source"] ?? [])
    // A folder on the command line or in the environment asks for a recording; otherwise recordings are made on request.
    let folders = SettingSources(flags: flags, environment: Arguments.environment()).texts(
      of: RecordingOptions().record)
    let namesFolder = folders.contains { $0.origin != .standard("record") }
    try await ServeCommand.serve(
      flags, defaults: namesFolder ? [:] : ["record-mode": "manual"], openingPage: !noOpen)
  }

  private var cameraPart: String? {
    switch camera {
    case "none": nil
    case "auto": CameraCatalogue.list().first { $0.problem == nil && !$0.modes.isEmpty }.map { "v4l2:\($0.path)" }
    default: "v4l2:\(camera)"
    }
  }

  private var microphonePart: String? {
    switch microphone {
    case "none": nil
    // The default device is often that of an audio server, which shares the hardware with other programs. It is used even if it
    // is not permitted: its error says what to do.
    case "auto": MicrophoneCatalogue.list().isEmpty ? nil : "alsa:default"
    default: "alsa:\(microphone)"
    }
  }
}

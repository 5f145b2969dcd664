extension VideoEncoding {
  /// The settings as an encoder's own options in libavcodec, by name.
  func options(for name: VideoEncoderName) -> [String: String] {
    switch name.family {
    case .x264: x264
    case .x265: x265
    case .svtAV1: svtAV1
    case .nvenc: nvenc
    case .vaapi: vaapi
    case .v4l2: [:]
    }
  }

  /// Position among the presets; 0 is the fastest.
  private var step: Int { Preset.allCases.firstIndex(of: preset) ?? 0 }

  private var x264: [String: String] {
    // Key frames are placed only where requested, never at a change of scene.
    var parameters = ["scenecut=0"]
    // Without lookahead, B-frames cannot be placed adaptively.
    if tune == .zerolatency { parameters += ["b-adapt=0", "b-pyramid=none"] }
    // zerolatency slices each frame for its threads. One thread needs no slices.
    if threads == 1 { parameters.append("sliced-threads=0") }
    var options = ["preset": preset.rawValue, "forced-idr": "1", "x264-params": parameters.joined(separator: ":")]
    if tune != .none { options["tune"] = tune.rawValue }
    options["profile"] = profile?.rawValue
    if case .quality(let value) = rateControl { options["crf"] = "\(value)" }
    return options
  }

  private var x265: [String: String] {
    var parameters = ["log-level=none", "scenecut=0", "open-gop=0"]
    // Encoding several frames at once would add delay.
    if tune == .zerolatency || threads == 1 { parameters.append("frame-threads=1") }
    if threads > 0 { parameters.append(threads == 1 ? "pools=none" : "pools=\(threads)") }
    var options = ["preset": preset.rawValue, "forced-idr": "1", "x265-params": parameters.joined(separator: ":")]
    if tune != .none { options["tune"] = tune.rawValue }
    options["profile"] = profile?.rawValue
    if case .quality(let value) = rateControl { options["crf"] = "\(value)" }
    return options
  }

  private var svtAV1: [String: String] {
    // Presets 12 to 4. In the low-delay structure no frame waits for a later one.
    var parameters = ["scd=0"]
    var options = ["preset": "\(12 - step)"]
    switch rateControl {
    case .constant: parameters += ["rc=2", "pred-struct=1"]
    case .variable: parameters += ["rc=1", "pred-struct=2"]
    case .quality(let value):
      parameters += ["rc=0", tune == .zerolatency ? "pred-struct=1" : "pred-struct=2"]
      // Its scale ends at 63, libx264's at 51.
      options["crf"] = "\(min(63, value * 63 / 51))"
    }
    if tune == .fastdecode { parameters.append("fast-decode=1") }
    if threads > 0 { parameters.append("lp=\(threads)") }
    options["svtav1-params"] = parameters.joined(separator: ":")
    return options
  }

  private var nvenc: [String: String] {
    var options = [
      // p1 to p7.
      "preset": "p\(1 + step * 6 / (Preset.allCases.count - 1))", "forced-idr": "1",
      "tune": tune == .zerolatency ? "ull" : "hq", "rc": rateControl == .constant ? "cbr" : "vbr",
    ]
    if tune == .zerolatency { options.merge(["zerolatency": "1", "delay": "0"]) { $1 } }
    if case .quality(let value) = rateControl { options["cq"] = "\(value)" }
    options["profile"] = profile?.rawValue
    return options
  }

  private var vaapi: [String: String] {
    var options = [
      "rc_mode": rateControl == .constant ? "CBR" : "VBR", "async_depth": tune == .zerolatency ? "1" : "2",
    ]
    options["profile"] = profile.map { $0 == .baseline ? "constrained_baseline" : $0.rawValue }
    return options
  }
}

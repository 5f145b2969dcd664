internal import Base
internal import Glibc

extension ServerConfiguration {
  /// Checks every configured folder on this machine. Makes the last component of the folders that are written to. Throws an
  /// error of one line. Waits for the disk, so it is for the start only, before any event loop runs.
  package func prepareFolders() throws(ConfigurationError) {
    if let folder = recordingsFolder { try Self.prepareWritable(folder, "record", advice: "or use --no-record") }
    if let folder = segmentsFolder { try Self.prepareWritable(folder, "segments", advice: "or leave it out") }
    if let folder = stateFolder { try Self.prepareWritable(folder, "state", advice: "or leave it out") }
    if let folder = webFolder, !Self.isFolder(folder) {
      throw Self.failure("web", folder, "no such folder", "name an existing folder")
    }
  }

  private static func prepareWritable(
    _ folder: String, _ setting: SettingName, advice: String
  ) throws(ConfigurationError) {
    // On a frozen file system mkdir fails even for an existing folder, so that is checked first.
    if !isFolder(folder), mkdir(folder, 0o755) != 0, errno != EEXIST {
      let reason =
        errno == ENOENT
        ? "the folder above it does not exist" : "cannot make the folder: \(String(cString: strerror(errno)))"
      throw failure(setting, folder, reason, "make it or name another one, \(advice)")
    }
    guard isFolder(folder) else {
      throw failure(setting, folder, "it is a file, not a folder", "name another one, \(advice)")
    }
    guard access(folder, W_OK | X_OK) == 0 else {
      let reason = "cannot write there: \(String(cString: strerror(errno)))"
      throw failure(setting, folder, reason, "change its permissions or name another one, \(advice)")
    }
  }

  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  private static func failure(
    _ setting: SettingName, _ folder: String, _ reason: String, _ advice: String
  ) -> ConfigurationError {
    let folder = LogText.escaped(folder)
    return ConfigurationError(
      .configuration, "\(folder) (\(setting.origin)): \(reason); \(advice)")
  }
}

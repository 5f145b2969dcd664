internal import CLibAV
internal import FMP4
internal import LibAV

/// Reads a picture of this machine as a frame for an encoder: upright, planar 4:2:0 with limited range, in the size
/// that is shown. Parts that are transparent have the colour that the file states for them.
enum PictureReader {
  /// Throws a `FileError`, a `FallbackError` or a `LibAVError`.
  static func read(_ path: String) throws -> (frame: VideoFrame, matrix: VideoEncoder.Format.Matrix) {
    let file = try OrdinaryFile(path)
    guard file.size > 0 else { throw FallbackError.empty(path) }
    guard file.size <= FallbackLimits.pictureBytes else { throw FallbackError.tooLarge(path, bytes: file.size) }
    let bytes = try file.beginning(FallbackLimits.pictureBytes)
    guard let format = PictureFormat(bytes) else { throw FallbackError.noPicture(path) }
    guard let stated = format.size(bytes) else {
      throw FallbackError.damaged(path, format, reason: "it ends before its width and height")
    }
    let most = FallbackLimits.picture
    guard stated.fits(in: most) else { throw FallbackError.tooManyPixels(path, stated) }
    try check(stated, path)
    let picture: VideoFrame
    do throws(LibAVError) {
      picture = try PictureDecoder.decode(bytes, format, maximumPixels: most.width * most.height)
    } catch {
      throw FallbackError.damaged(path, format, reason: error.reason)
    }
    let size = PictureSize(width: Int(picture.frame.pointee.width), height: Int(picture.frame.pointee.height))
    try check(size, path)
    // WebP says itself which range it has. The others have the full one, and libavcodec does not say so of grey.
    if format != .webp { picture.frame.pointee.color_range = AVCOL_RANGE_JPEG }
    return (try scale(picture, size, format.matrix), format.matrix)
  }

  /// Refuses what is too small, or would be when it is scaled down.
  private static func check(_ size: PictureSize, _ path: String) throws(FallbackError) {
    guard size.width > 0, size.height > 0 else { throw .tooSmall(path, size) }
    let shown = size.scaled(into: FallbackLimits.largestShown)
    guard FallbackLimits.smallestShown.fits(in: shown) else { throw .tooSmall(path, shown) }
  }

  private static func scale(
    _ picture: VideoFrame, _ size: PictureSize, _ matrix: VideoEncoder.Format.Matrix
  ) throws(LibAVError) -> VideoFrame {
    let rotation = rotation(picture)
    let most = FallbackLimits.largestShown
    let shown = rotation.swapsSides ? size.turned.scaled(into: most).turned : size.scaled(into: most)
    let scaler = FrameScaler(flags: Int32(SWS_BICUBIC))
    let result = try VideoFrame(width: shown.width, height: shown.height, format: AV_PIX_FMT_YUV420P)
    let context = try scaler.context(
      for: picture.frame.pointee, to: (shown.width, shown.height),
      matrix: matrix == .bt709 ? SWS_CS_ITU709 : SWS_CS_ITU601)
    let code = withExtendedLifetime((scaler, picture)) { sws_scale_frame(context, result.frame, picture.frame) }
    try LibAVError.check(code, "scale the picture")
    return try result.turned(by: rotation)
  }

  /// How a photograph is to be turned (Exif), which libavcodec states as a matrix.
  private static func rotation(_ picture: VideoFrame) -> Rotation {
    guard let found = av_frame_get_side_data(picture.frame, AV_FRAME_DATA_DISPLAYMATRIX)?.pointee,
      let data = found.data, found.size >= 9 * MemoryLayout<Int32>.size
    else { return .none }
    return data.withMemoryRebound(to: Int32.self, capacity: 9) { Rotation(a: $0[0], b: $0[1], c: $0[3], d: $0[4]) }
  }
}

extension PictureFormat {
  /// Its pixels are red, green and blue, which any matrix converts; or what JFIF and WebP convert them to, BT.601.
  fileprivate var matrix: VideoEncoder.Format.Matrix {
    switch self {
    case .png, .bmp: .bt709
    case .jpeg, .webp: .bt601
    }
  }
}

/// Configuration records that ffmpeg 5.1.9 (Debian 12) wrote into MP4 files, each with the arguments after
/// `ffmpeg -f lavfi` that made it. They are the judges: what weir builds from the parameter sets in them must be
/// the same bytes.
package enum RecordFixture {
  /// `-i testsrc2=s=640x360:r=30 -c:v libx264 -pix_fmt yuv420p, colours bt709`
  package static let h264High = bytes(
    """
    0164001effe1001e6764001eacd940a02ff97016a0202028000003000800000301e078b16cb001000668ebe3cb22c0fdf8f8
    00
    """)

  /// `-i testsrc2=s=1920x1080:r=30000/1001 -c:v libx264 -preset ultrafast -bf 0 -pix_fmt yuv420p`
  package static let h264Baseline1080 = bytes(
    """
    0142c028ffe100176742c028da01e0089f97011000003e90000ea600f1832a01000468ce0fc8
    """)

  /// `-i testsrc2=s=720x576:r=25 -vf setsar=16/11 -c:v libx264 -flags +ildct+ilme -x264opts tff=1`
  package static let h264Interlaced = bytes(
    """
    0164001effe100186764001eacd940b424d8208000000300800000190f8a14cb01000668fba3cb22c0fdf8f800
    """)

  /// `-i testsrc2=s=642x362:r=60 -c:v libx264 -pix_fmt yuv422p10le -x264-params cqm=jvt -color_range pc`
  package static let h264High422 = bytes(
    """
    017a001fffe1001c677a001fb6cd940a42fe227c05b2000003000200000300f01e30632c01000768ebe3cb3002c0fefafa00
    """)

  /// `-i testsrc2=s=320x240:r=24000/1001 -c:v libx264 -pix_fmt yuv444p`
  package static let h264High444 = bytes(
    """
    01f4000dffe1001767f4000d919b28283f6022000007d2000177001e28532c01000668ebe3c44844fff8f800
    """)

  /// `-i testsrc2=s=640x360:r=30 -c:v libx264 -x264-params nal-hrd=cbr:slices=4:aud=1, 500 kbit/s`
  package static let h264Reference = bytes(
    """
    0164001effe100256764001eacd940a02ff970110000030001000003003c602001e840007a13930c01e2c5b2c001000568eb
    ecb22cfdf8f800
    """)

  /// `-i testsrc2=s=1920x1080:r=30 -c:v libx265 -preset ultrafast -x265-params info=0 -pix_fmt yuv420p -tag:v hvc1`
  package static let hevcMain = bytes(
    """
    01016000000090000000000078f000fcfdf8f800000f03a00001001840010c01ffff01600000030090000003000003007895
    9409a10001002b420101016000000300900000030000030078a003c0801107cb965654a4c2f0168080000003008000000f04
    a2000100064401c073c189
    """)

  /// `-i testsrc2=s=640x360:r=50 -c:v libx265 -x265-params info=0:hdr10=1:repeat-headers=1, bt2020 and PQ, mastering display`
  package static let hevcMain10 = bytes(
    """
    0102200000009000000000005af000fcfdfafa00000f04a00001001840010c01ffff02200000030090000003000003005a95
    9809a10001002e42010102200000030090000003000003005aa005020169365959a4932bc05a848804820000030002000003
    006410a2000100074401c172b4624027000200094e01900403e8019080001e4e01891833c286c41d4c0bb884d03e803d1340
    4200989680000003000180
    """)

  /// `-i testsrc2=s=640x360:r=30000/1001 -vf setsar=4/3 -c:v libx265 -x265-params info=0:scaling-list=default:no-wpp=1:hrd=1 -pix_fmt yuv422p`
  package static let hevc422 = bytes(
    """
    0104080000009d08000000003ff000fcfef8f800000f04a00001001740010c01ffff0408000003009d0800000300003f9598
    09a1000100314201010408000003009d0800000300003fb00502016965959a49395e1cd01000003e9000075306124966e003
    0d40061a88a2000100074401c172b4224027000100064e0181010f80
    """)

  /// `-i testsrc2=s=1000x562:r=24 -c:v libx265 -x265-params info=0:wpp=0 -pix_fmt yuv444p12le`
  package static let hevc444 = bytes(
    """
    0104080000009808000000005df000fcfffcfc00000f03a00001001740010c01ffff040800000300980800000300005d9598
    09a10001002c420101040800000300980800000300005d9000fa4011cf9ca52cacd24995e02d010000030001000003001808
    a2000100084401c172860c4224
    """)

  /// `-i testsrc2=s=640x360:r=30 -c:v libaom-av1 -usage realtime -pix_fmt yuv420p, colours bt709`
  package static let av1Main = bytes(
    """
    81010c000a0e0000000cc4ff6736be4404040410
    """)

  /// `-i testsrc2=s=1280x720:r=25 -c:v libsvtav1 -preset 12 -pix_fmt yuv420p10le, bt2020 and HLG`
  package static let av1TenBit = bytes(
    """
    81054c000a0e0000002d4cffb3c02f8509120904
    """)

  /// `-i sine=r=48000 -ac 2 -c:a libopus`
  package static let opusStereo = bytes(
    """
    000201380000bb80000000
    """)

  /// `-i sine=r=48000 -ac 6 -c:a libopus`
  package static let opusSurround = bytes(
    """
    000601380000bb800000010402000401020305
    """)

  /// Hexadecimal digits, white space between them allowed.
  package static func bytes(_ hexadecimal: String) -> [UInt8] {
    let digits = hexadecimal.compactMap(\.hexDigitValue).map(UInt8.init)
    return stride(from: 0, to: digits.count - 1, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }
}

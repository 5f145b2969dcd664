// swift-tools-version: 6.1
import PackageDescription

/// Language settings every Swift target of weir shares: Swift 6 mode, and the upcoming features that let the
/// compiler hold the arrows between the modules (ARCHITECTURE.md).
let house: [SwiftSetting] = [
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .enableUpcomingFeature("ExistentialAny"),
]

/// Tests are not optimised: that takes minutes, and what they test is optimised all the same. Their files are compiled in
/// batches, one for each processor, not as a whole by one.
let testing: [SwiftSetting] = house + [.unsafeFlags(["-Onone", "-no-whole-module-optimization", "-enable-batch-mode"])]

/// Linux system calls that glibc declares only for GNU sources: memfd_create, fallocate, copy_file_range, accept4.
let gnuSource: [CSetting] = [.define("_GNU_SOURCE")]

let nio: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioHTTP1: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let system: Target.Dependency = .product(name: "SystemPackage", package: "swift-system")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let signals: Target.Dependency = .product(name: "UnixSignals", package: "swift-service-lifecycle")
let argumentParser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")

/// The modules below the executable, from the lowest up.
let ingestModules = [
  "FMP4", "RecordingFormat", "Base", "Publishing", "RTMP", "MPEGTS", "SRT", "WebRTC", "LibAV", "Transcode", "Local",
]
let modules =
  ingestModules + [
    "Storage", "HTTP", "Control", "Streams", "Playlists", "RecordingFiles", "Recording", "Delivery", "LocalSources",
    "Answers", "API", "Settings",
  ]
let ingest: [Target.Dependency] = ingestModules.map { .target(name: $0) }
let server: [Target.Dependency] = modules.map { .target(name: $0) }

let package = Package(
  name: "weir",
  products: [
    .executable(name: "weir", targets: ["Server"]),
    .library(name: "FMP4", targets: ["FMP4"]),
  ],
  dependencies: [
    .package(url: "https://github.com/apple/swift-nio", from: "2.101.2"),
    .package(url: "https://github.com/apple/swift-nio-ssl", from: "2.37.6"),
    .package(url: "https://github.com/apple/swift-nio-http2", from: "1.46.0"),
    .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
    .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
    .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
  ],
  targets: [
    // What media is, and how it is boxed. Knows no socket, file, clock, task, protocol or playlist. A library of its own.
    .target(
      name: "FMP4", dependencies: [nio], exclude: ["Recording", "README.md", "Fragmenting/README.md"],
      swiftSettings: house),

    // The format of a recording's file: seals, notes, changes of parameters.
    .target(
      name: "RecordingFormat", dependencies: ["FMP4", nio], path: "Sources/FMP4/Recording", exclude: ["README.md"],
      swiftSettings: house),

    // What knows no publisher, stream or request: text, times, addresses, budgets, threads, worker processes.
    .target(
      name: "Base",
      dependencies: ["FMP4", "CChecksum", "CProcess", nio, nioPosix, nioSSL, logging],
      path: "Sources/Ingest/Base", exclude: ["CChecksum", "Workers/CProcess", "README.md"], cSettings: gnuSource,
      swiftSettings: house),
    // The one instruction that Swift cannot say.
    .target(name: "CChecksum", path: "Sources/Ingest/Base/CChecksum"),
    .systemLibrary(name: "CProcess", path: "Sources/Ingest/Base/Workers/CProcess"),

    // Who may publish; a connection and its publication in any protocol. Knows no wire format.
    .target(
      name: "Publishing", dependencies: ["Base", "FMP4", "COpenSSL", nio, logging],
      path: "Sources/Ingest/Publishing", exclude: ["Admission/COpenSSL", "Assembly/README.md", "README.md"],
      cSettings: gnuSource, swiftSettings: house),
    .systemLibrary(
      name: "COpenSSL", path: "Sources/Ingest/Publishing/Admission/COpenSSL", pkgConfig: "libcrypto",
      providers: [.apt(["libssl-dev"])]),

    // The protocols. Each knows Publishing, and none another but SRT, which carries MPEG-TS.
    .target(
      name: "RTMP", dependencies: ["Publishing", "Base", "FMP4", "COpenSSL", nio, nioPosix, nioSSL, logging],
      path: "Sources/Ingest/RTMP", exclude: ["README.md"], cSettings: gnuSource, swiftSettings: house),
    .target(
      name: "MPEGTS", dependencies: ["Publishing", "Base", "FMP4", nio, logging],
      path: "Sources/Ingest/MPEGTS", exclude: ["README.md"], cSettings: gnuSource, swiftSettings: house),
    .target(
      name: "SRT", dependencies: ["MPEGTS", "Publishing", "Base", "FMP4", "CSRT", "CProcess", nio, nioPosix, logging],
      path: "Sources/Ingest/SRT", exclude: ["CSRT", "README.md"], cSettings: gnuSource, swiftSettings: house),
    // The flavour with GnuTLS: libavformat brings the same one, and two copies of libsrt crash at exit.
    .systemLibrary(
      name: "CSRT", path: "Sources/Ingest/SRT/CSRT", pkgConfig: "srt", providers: [.apt(["libsrt-gnutls-dev"])]),
    .target(
      name: "WebRTC",
      dependencies: [
        "Publishing", "Base", "FMP4", "COpenSSL", "CSRTP", "CSRTPCiphers", "CDTLS", nio, nioPosix, logging,
      ],
      path: "Sources/Ingest/WebRTC", exclude: ["CSRTP", "CSRTPCiphers", "CDTLS", "CLibSSL", "README.md"],
      cSettings: gnuSource, swiftSettings: house),
    // DTLS has no other library here: NIOSSL's copy of BoringSSL knows only TLS. The names of that copy have a prefix.
    .target(name: "CDTLS", dependencies: ["CLibSSL"], path: "Sources/Ingest/WebRTC/CDTLS"),
    .systemLibrary(
      name: "CLibSSL", path: "Sources/Ingest/WebRTC/CLibSSL", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(
      name: "CSRTP", path: "Sources/Ingest/WebRTC/CSRTP", pkgConfig: "libsrtp2", providers: [.apt(["libsrtp2-dev"])]),
    // OpenSSL's ciphers for it: those of Debian's libsrtp2 are NSS's, which are slower by far.
    .target(
      name: "CSRTPCiphers", dependencies: ["CSRTP", "COpenSSL"], path: "Sources/Ingest/WebRTC/CSRTPCiphers"),

    // libav's frames, decoders and encoders. Knows media alone.
    .target(
      name: "LibAV", dependencies: ["FMP4", "CLibAV", "CLibAVCalls", "CV4L2", nio],
      path: "Sources/Ingest/LibAV", exclude: ["CLibAV", "CLibAVCalls", "README.md"], cSettings: gnuSource,
      swiftSettings: house),
    // Its headers alone: without pkgConfig it is not linked.
    .systemLibrary(
      name: "CLibAV", path: "Sources/Ingest/LibAV/CLibAV",
      providers: [
        .apt(["libavcodec-dev", "libavformat-dev", "libavutil-dev", "libswscale-dev", "libswresample-dev"])
      ]),
    // Its functions, each of which loads it.
    .target(name: "CLibAVCalls", path: "Sources/Ingest/LibAV/CLibAVCalls"),

    // Renditions and still images, made by a worker process. Knows no stream.
    .target(
      name: "Transcode", dependencies: ["LibAV", "Publishing", "Base", "FMP4", "CLibAV", "CProcess", nio, logging],
      path: "Sources/Ingest/Transcode", exclude: ["README.md"], cSettings: gnuSource, swiftSettings: house),

    // The server's own sources: cameras, microphones, files, test patterns, datagrams, calls by SRT.
    .target(
      name: "Local",
      dependencies: [
        "LibAV", "SRT", "MPEGTS", "Publishing", "Base", "FMP4", "CLibAV", "CV4L2", "CALSA", nio, nioPosix, logging,
      ],
      path: "Sources/Ingest/Local", exclude: ["Camera/CV4L2", "Microphone/CALSA", "README.md"], cSettings: gnuSource,
      swiftSettings: house),
    .systemLibrary(
      name: "CV4L2", path: "Sources/Ingest/Local/Camera/CV4L2", pkgConfig: "libv4l2",
      providers: [.apt(["libv4l-dev"])]),
    .systemLibrary(
      name: "CALSA", path: "Sources/Ingest/Local/Microphone/CALSA", pkgConfig: "alsa",
      providers: [.apt(["libasound2-dev"])]),

    // Files, ranges of them, memory of segments. Knows nobody who asks for them.
    .target(
      name: "Storage", dependencies: ["Base", "CSQLite", nio, nioPosix, system, grdb],
      path: "Sources/Server/Storage", exclude: ["CSQLite", "README.md"], cSettings: gnuSource, swiftSettings: house),
    .systemLibrary(name: "CSQLite", path: "Sources/Server/Storage/CSQLite"),

    // Connections, requests, responses, TLS. Knows no stream, playlist or route.
    .target(
      name: "HTTP",
      dependencies: [
        "Storage", "Base", "CZlib", nio, nioPosix, nioHTTP1, nioSSL, logging, signals,
        .product(name: "NIOTLS", package: "swift-nio"),
      ],
      path: "Sources/Server/HTTP", exclude: ["CZlib", "README.md"], cSettings: gnuSource, swiftSettings: house),
    .systemLibrary(
      name: "CZlib", path: "Sources/Server/HTTP/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),

    // Keys, tokens, callbacks; events and where they are told. Knows no stream's media.
    .target(
      name: "Control",
      dependencies: [
        "Storage", "Publishing", "Base", "FMP4", nio, nioPosix, nioHTTP1, logging, grdb, crypto,
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
      ],
      path: "Sources/Server/Control", exclude: ["README.md", "Access/README.md", "Events/README.md"],
      cSettings: gnuSource, swiftSettings: house),

    // Live streams by name. Knows no HTTP, playlist or recording.
    .target(
      name: "Streams",
      dependencies: [
        "Control", "Storage", "Transcode", "Publishing", "Base", "FMP4", nio, nioPosix, logging, grdb,
      ],
      path: "Sources/Server/Streams", exclude: ["README.md"], cSettings: gnuSource, swiftSettings: house),

    // HLS and DASH as text.
    .target(
      name: "Playlists", dependencies: ["Streams", "HTTP", "Base", "FMP4", nio, nioPosix],
      path: "Sources/Server/Playlists", exclude: ["README.md"], cSettings: gnuSource, swiftSettings: house),

    // Recordings on disk: their files and indexes; found, titled, kept. Knows no recorder and no playback.
    .target(
      name: "RecordingFiles",
      dependencies: [
        "Streams", "Storage", "Publishing", "Base", "RecordingFormat", "FMP4", nio, nioPosix, logging, grdb,
      ],
      path: "Sources/Server/RecordingFiles", exclude: ["README.md", "Catalogue/README.md"], cSettings: gnuSource,
      swiftSettings: house),

    // Recordings: written and played. Knows no route.
    .target(
      name: "Recording",
      dependencies: [
        "RecordingFiles", "Playlists", "Streams", "Control", "HTTP", "Storage", "Publishing", "Base", "RecordingFormat",
        "FMP4", nio, nioPosix, logging,
      ],
      path: "Sources/Server/Recording", exclude: ["README.md"], cSettings: gnuSource, swiftSettings: house),

    // Routes of media: live, recorded, by WebRTC, uploaded; live segments in a folder. Knows no JSON.
    .target(
      name: "Delivery",
      dependencies: [
        "Recording", "RecordingFiles", "Playlists", "Streams", "Control", "HTTP", "Storage", "WebRTC", "MPEGTS",
        "Transcode", "Publishing", "Base", "RecordingFormat", "FMP4", nio, nioHTTP1, logging,
      ],
      path: "Sources/Server/Delivery", exclude: ["README.md"], cSettings: gnuSource, swiftSettings: house),

    // Own sources, on air and recorded.
    .target(
      name: "LocalSources",
      dependencies: [
        "Recording", "Streams", "Control", "HTTP", "Storage", "Local", "SRT", "LibAV", "Transcode", "Publishing",
        "Base", "FMP4", nio, logging,
      ],
      path: "Sources/Server/LocalSources", exclude: ["README.md"], cSettings: gnuSource, swiftSettings: house),

    // What the API answers and takes as JSON, and its schemas. Knows no route.
    .target(
      name: "Answers",
      dependencies: [
        "Recording", "RecordingFiles", "Streams", "Control", "HTTP", "Storage", "Local", "LibAV", "Transcode",
        "Publishing", "Base", "FMP4", nio,
      ],
      path: "Sources/Server/Answers", exclude: ["README.md"], cSettings: gnuSource, swiftSettings: house),

    // The API: its table and description; metrics; pages.
    .target(
      name: "API",
      dependencies: [
        "Answers", "Delivery", "LocalSources", "Recording", "RecordingFiles", "Streams", "Control", "HTTP", "Storage",
        "Local", "LibAV", "Transcode", "Publishing", "Base", "FMP4", "CWeb", nio, nioPosix, nioHTTP1, logging,
      ],
      path: "Sources/Server/API", exclude: ["README.md"], cSettings: gnuSource, swiftSettings: house),
    // The files of web/, embedded by #embed.
    .target(name: "CWeb", path: "Sources/Server/CWeb", cSettings: [.unsafeFlags(["-Wno-c23-extensions"])]),

    // Flags, variables, the configuration file, and the settings made of them.
    .target(
      name: "Settings",
      dependencies: [
        "LocalSources", "Recording", "RecordingFiles", "Playlists", "Streams", "Control", "HTTP", "SRT", "LibAV",
        "Transcode", "Publishing", "Base", "FMP4", nio, logging, crypto, .product(name: "Yams", package: "Yams"),
      ],
      path: "Sources/Server/Settings", exclude: ["README.md"], cSettings: gnuSource, swiftSettings: house),

    // The executable: the parts of a server put together, and the commands.
    .executableTarget(
      name: "Server",
      dependencies: server + [
        "CMachine", nio, nioPosix, nioHTTP1, logging, signals, argumentParser,
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
      ],
      exclude: [
        "API", "Answers", "CWeb", "Control", "Delivery", "HTTP", "LocalSources", "Playlists", "Recording",
        "RecordingFiles", "Settings", "Storage", "Streams", "Commands/Doctor/CMachine", "App/README.md",
        "Commands/README.md", "README.md",
      ],
      cSettings: gnuSource,
      swiftSettings: house),
    .systemLibrary(name: "CMachine", path: "Sources/Server/Commands/Doctor/CMachine"),

    // What several test targets use. No module of one protocol or of the server.
    .target(
      name: "Support", dependencies: ["Publishing", "Base", "FMP4", nio, nioPosix, logging], path: "Tests/Support",
      swiftSettings: testing),
    // The same, with transport streams and libav's decoder.
    .target(
      name: "IngestSupport", dependencies: ["LibAV", "MPEGTS", "Publishing", "CLibAV", nio],
      path: "Tests/IngestSupport",
      swiftSettings: testing),
    // The same, with the server's HTTP.
    .target(
      name: "ServerSupport",
      dependencies: [
        "HTTP", "Storage", "Base", "FMP4", nio, nioPosix, nioSSL, logging, crypto,
        .product(name: "CryptoExtras", package: "swift-crypto"),
      ], path: "Tests/ServerSupport",
      swiftSettings: testing),
    // The same, with live streams.
    .target(
      name: "StreamSupport", dependencies: ["Playlists", "Streams", "Publishing", "FMP4", "Support", logging],
      path: "Tests/StreamSupport",
      swiftSettings: testing),
    // The same, with recordings.
    .target(
      name: "RecordingSupport",
      dependencies: [
        "Recording", "RecordingFiles", "Streams", "Publishing", "FMP4", "Support", nioPosix, logging,
      ],
      path: "Tests/RecordingSupport",
      swiftSettings: testing),

    // One for each module.
    .testTarget(
      name: "FMP4Tests", dependencies: ["FMP4", "RecordingFormat", "FMP4Example", "Support", nio],
      swiftSettings: testing),
    // FMP4 as other packages use it: what is `package` is hidden from it.
    .executableTarget(
      name: "FMP4Example", dependencies: ["FMP4", nio], path: "Tests/FMP4Example", packageAccess: false,
      swiftSettings: testing),
    .testTarget(
      name: "RecordingFormatTests", dependencies: ["RecordingFormat", "FMP4", "Support", nio], swiftSettings: testing),
    .testTarget(
      name: "BaseTests", dependencies: ["Base", "FMP4", "CProcess", "CProbe", "Support", nio, nioPosix, nioEmbedded],
      exclude: ["Workers/CProbe"], cSettings: gnuSource, swiftSettings: testing),
    // System calls that a worker must not make, for the tests that try them.
    .systemLibrary(name: "CProbe", path: "Tests/BaseTests/Workers/CProbe"),
    .testTarget(
      name: "PublishingTests", dependencies: ["Publishing", "Base", "FMP4", "Support", nio, nioPosix, logging],
      swiftSettings: testing),
    .testTarget(
      name: "RTMPTests", dependencies: ["RTMP", "Publishing", "Base", "FMP4", "Support", nio, nioPosix],
      swiftSettings: testing),
    .testTarget(
      name: "MPEGTSTests",
      dependencies: ["MPEGTS", "Publishing", "Base", "FMP4", "Support", "IngestSupport", nio, nioPosix],
      swiftSettings: testing),
    .testTarget(
      name: "SRTTests",
      dependencies: ["SRT", "MPEGTS", "Publishing", "Base", "FMP4", "Support", "IngestSupport", nio, nioPosix],
      swiftSettings: testing),
    .testTarget(
      name: "WebRTCTests",
      dependencies: ["WebRTC", "Publishing", "Base", "FMP4", "Support", nio, nioPosix, nioEmbedded, logging],
      swiftSettings: testing),
    .testTarget(
      name: "LibAVTests", dependencies: ["LibAV", "FMP4", "CLibAV"], swiftSettings: testing),
    .testTarget(
      name: "TranscodeTests",
      dependencies: [
        "Transcode", "Local", "LibAV", "Publishing", "Base", "FMP4", "CLibAV", "Support", "IngestSupport", nio, logging,
      ], swiftSettings: testing),
    .testTarget(
      name: "LocalTests",
      dependencies: [
        "Local", "LibAV", "Publishing", "Base", "FMP4", "CLibAV", "Support", "IngestSupport", nio, nioPosix,
        nioEmbedded, logging,
      ], swiftSettings: testing),
    .testTarget(
      name: "StorageTests", dependencies: ["Storage", nio], swiftSettings: testing),
    .testTarget(
      name: "HTTPTests",
      dependencies: [
        "HTTP", "Storage", "Base", "Support", "ServerSupport", nio, nioPosix, nioEmbedded, nioHTTP1,
        .product(name: "NIOHTTP2", package: "swift-nio-http2"), .product(name: "NIOHPACK", package: "swift-nio-http2"),
        nioSSL, logging,
      ], cSettings: gnuSource, swiftSettings: testing),
    .testTarget(
      name: "ControlTests",
      dependencies: [
        "Control", "HTTP", "Publishing", "Base", "FMP4", "Support", "ServerSupport", nio, nioHTTP1, logging, crypto,
        .product(name: "CryptoExtras", package: "swift-crypto"),
      ], swiftSettings: testing),
    .testTarget(
      name: "StreamsTests",
      dependencies: [
        "Streams", "Control", "Storage", "Local", "Transcode", "Publishing", "Base", "FMP4", "Support", "ServerSupport",
        "StreamSupport", nio, nioPosix, nioEmbedded, logging,
      ], swiftSettings: testing),
    .testTarget(
      name: "PlaylistsTests",
      dependencies: [
        "Playlists", "Streams", "HTTP", "Storage", "Transcode", "Base", "FMP4", "Support", "ServerSupport",
        "StreamSupport", nio, nioPosix, logging,
      ], swiftSettings: testing),
    .testTarget(
      name: "RecordingFilesTests",
      dependencies: [
        "RecordingFiles", "Recording", "Storage", "Publishing", "Base", "Support", "RecordingSupport", nio, nioPosix,
      ], cSettings: gnuSource, swiftSettings: testing),
    .testTarget(
      name: "RecordingTests",
      dependencies: [
        "Recording", "RecordingFiles", "Streams", "HTTP", "Storage", "Publishing", "Base", "RecordingFormat", "FMP4",
        "CChecksum", "Support", "ServerSupport", "StreamSupport", "RecordingSupport", nio, nioPosix, logging,
      ], cSettings: gnuSource, swiftSettings: testing),
    .testTarget(
      name: "DeliveryTests",
      dependencies: [
        "Delivery", "Recording", "Playlists", "Streams", "Control", "HTTP", "Storage", "Publishing", "Base", "FMP4",
        "Support", "StreamSupport", nio, nioPosix, nioEmbedded, nioHTTP1, logging,
      ], swiftSettings: testing),
    .testTarget(
      name: "LocalSourcesTests",
      dependencies: [
        "LocalSources", "Recording", "RecordingFiles", "Streams", "Local", "LibAV", "Publishing", "Base", "FMP4",
        "Support", "RecordingSupport", nio, nioPosix, logging,
      ], swiftSettings: testing),
    .testTarget(
      name: "AnswersTests",
      dependencies: [
        "Answers", "Recording", "RecordingFiles", "Control", "HTTP", "Publishing", "Base", "FMP4", "Support",
        "RecordingSupport", nio, nioPosix, nioHTTP1,
      ], swiftSettings: testing),
    .testTarget(
      name: "APITests",
      dependencies: [
        "API", "Answers", "LocalSources", "Delivery", "Recording", "RecordingFiles", "Streams", "Control", "HTTP",
        "Storage",
        "Publishing", "Base", "FMP4", "Support", "ServerSupport", "StreamSupport", "RecordingSupport", nio, nioPosix,
        nioEmbedded, nioHTTP1, logging,
      ], swiftSettings: testing),
    .testTarget(
      name: "SettingsTests",
      dependencies: [
        "Settings", "LocalSources", "Recording", "RecordingFiles", "Playlists", "Streams", "Control", "HTTP",
        "Transcode", "LibAV", "Publishing", "Base", "FMP4", "Support", "StreamSupport", nio, logging,
      ], swiftSettings: testing),
    .testTarget(
      name: "ServerTests",
      dependencies: [
        "Server", "Settings", "Answers", "Recording", "RecordingFiles", "HTTP", "Publishing", "Base", "FMP4",
        "Support",
        "ServerSupport", nio, nioPosix, logging, argumentParser,
      ], cSettings: gnuSource, swiftSettings: testing),
  ],
  swiftLanguageModes: [.v6]
)

// `make fuzz`: the parsers alone, instrumented, below libFuzzer's driver.
if let purpose = Context.environment["WEIR_FUZZ"] {
  // `make fuzz-coverage`: it counts as well how often each line runs.
  let counting = purpose == "coverage" ? ["-profile-generate", "-profile-coverage-mapping"] : []
  let instrumented: [SwiftSetting] =
    house + [.unsafeFlags(["-sanitize=fuzzer,address", "-enable-testing", "-Xcc", "-fsanitize=address"] + counting)]
  let shared = package.targets.filter {
    !["Server", "FMP4Example", "CProbe"].contains($0.name) && $0.type != .test && !$0.name.hasSuffix("Support")
  }
  for target in shared where modules.contains(target.name) { target.swiftSettings = instrumented }
  package.products = []
  package.targets =
    shared + [
      .target(
        name: "Support", dependencies: ["FMP4", "Base", "Publishing", nio], path: "Tests/Support",
        sources: [
          "PublishedRecord.swift", "RecordFixture.swift", "SenderCapture.swift", "SyntheticMedia.swift",
          "TimeLiterals.swift",
        ],
        swiftSettings: instrumented),
      .executableTarget(
        name: "Fuzz",
        dependencies: server + [
          "Support", nio, nioPosix, nioHTTP1, logging, grdb, .product(name: "NIOEmbedded", package: "swift-nio"),
        ], path: "Tests",
        exclude: ["EndToEndTests", "Fixtures", "Golden"],
        sources: [
          "Fuzz", "RTMPTests/RTMPScript.swift", "IngestSupport/TransportScript.swift",
          "HTTPTests/HTTP1/HTTP1Reading.swift", "HTTPTests/HTTP2/HTTP2Reading.swift",
          "HTTPTests/HTTP2/HTTP2Bytes.swift",
        ],
        cSettings: gnuSource, swiftSettings: instrumented,
        linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"] + counting.prefix(1))]),
    ]
}

// `make sanitize` for threads: locks, continuations and reference counts that Thread Sanitizer can follow. The file Mutex.swift
// has to be in each module, where its name hides that of Synchronization.
if Context.environment["WEIR_SANITIZER"] == "thread" {
  let folder = "Tests/Sanitizer"
  let locking = modules.filter { !["FMP4", "RecordingFormat", "LibAV"].contains($0) } + ["Server"]
  let following: [SwiftSetting] = [
    .unsafeFlags([
      "\(Context.packageDirectory)/\(folder)/Mutex.swift", "-disable-upcoming-feature", "MemberImportVisibility",
    ])
  ]
  for target in package.targets where locking.contains(target.name) {
    target.dependencies += ["Locks", "COrder"]
    target.swiftSettings = house + following
  }
  package.targets.first { $0.name == "Server" }?.linkerSettings = [
    .unsafeFlags(
      ["swift_continuation_await", "swift_release", "swift_isUniquelyReferenced_nonNull_native"]
        .flatMap { ["-Xlinker", "--wrap=\($0)"] })
  ]
  package.targets =
    package.targets.filter { $0.type != .test } + [
      .target(name: "Locks", path: "\(folder)/Locks", swiftSettings: house),
      .target(name: "COrder", path: "\(folder)/COrder"),
    ]
}

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
let system: Target.Dependency = .product(name: "SystemPackage", package: "swift-system")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")

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
      name: "FMP4", dependencies: [nio], exclude: ["README.md", "Fragmenting/README.md"], swiftSettings: house),

    // Publishers' bytes to samples. Knows no box, segment, playlist or HTTP route.
    .target(
      name: "Ingest",
      dependencies: [
        "FMP4", "CLibAV", "CLibAVCalls", "CV4L2", "CALSA", "COpenSSL", "CProcess", "CSRT", "CSRTP",
        "CSRTPCiphers", "CDTLS", nio, logging,
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      exclude: [
        "LibAV/CLibAV", "LibAV/CLibAVCalls", "Local/Camera/CV4L2", "Local/Microphone/CALSA", "Admission/COpenSSL",
        "Workers/CProcess", "SRT/CSRT", "WebRTC/CSRTP", "WebRTC/CSRTPCiphers",
        "WebRTC/CDTLS", "WebRTC/CLibSSL",
        "README.md", "Assembly/README.md", "Local/README.md", "MPEGTS/README.md", "RTMP/README.md", "SRT/README.md",
        "Transcode/README.md", "WebRTC/README.md",
      ],
      cSettings: gnuSource,
      swiftSettings: house),
    // Its headers alone: without pkgConfig it is not linked.
    .systemLibrary(
      name: "CLibAV", path: "Sources/Ingest/LibAV/CLibAV",
      providers: [
        .apt(["libavcodec-dev", "libavformat-dev", "libavutil-dev", "libswscale-dev", "libswresample-dev"])
      ]),
    // Its functions, each of which loads it.
    .target(name: "CLibAVCalls", path: "Sources/Ingest/LibAV/CLibAVCalls"),
    .systemLibrary(
      name: "CV4L2", path: "Sources/Ingest/Local/Camera/CV4L2", pkgConfig: "libv4l2",
      providers: [.apt(["libv4l-dev"])]),
    .systemLibrary(
      name: "CALSA", path: "Sources/Ingest/Local/Microphone/CALSA", pkgConfig: "alsa",
      providers: [.apt(["libasound2-dev"])]),

    .systemLibrary(name: "CProcess", path: "Sources/Ingest/Workers/CProcess"),
    // The flavour with GnuTLS: libavformat brings the same one, and two copies of libsrt crash at exit.
    .systemLibrary(
      name: "CSRT", path: "Sources/Ingest/SRT/CSRT", pkgConfig: "srt", providers: [.apt(["libsrt-gnutls-dev"])]),
    // DTLS has no other library here: NIOSSL's copy of BoringSSL knows only TLS. The names of that copy have a prefix.
    .target(name: "CDTLS", dependencies: ["CLibSSL"], path: "Sources/Ingest/WebRTC/CDTLS"),
    .systemLibrary(
      name: "CLibSSL", path: "Sources/Ingest/WebRTC/CLibSSL", pkgConfig: "libssl", providers: [.apt(["libssl-dev"])]),
    .systemLibrary(
      name: "CSRTP", path: "Sources/Ingest/WebRTC/CSRTP", pkgConfig: "libsrtp2", providers: [.apt(["libsrtp2-dev"])]),
    // OpenSSL's ciphers for it: those of Debian's libsrtp2 are NSS's, which are slower by far.
    .target(
      name: "CSRTPCiphers", dependencies: ["CSRTP", "COpenSSL"], path: "Sources/Ingest/WebRTC/CSRTPCiphers"),
    .systemLibrary(
      name: "COpenSSL", path: "Sources/Ingest/Admission/COpenSSL", pkgConfig: "libcrypto",
      providers: [.apt(["libssl-dev"])]),

    // What knows no media: text, sizes, JSON, checksums, budgets.
    .target(
      name: "Basics",
      dependencies: ["CChecksum", nio, logging, .product(name: "NIOPosix", package: "swift-nio")],
      path: "Sources/Server/Basics", exclude: ["CChecksum", "README.md"], cSettings: gnuSource, swiftSettings: house),
    // The one instruction that Swift cannot say.
    .target(name: "CChecksum", path: "Sources/Server/Basics/CChecksum"),

    // Files, ranges of them, memory of segments. Knows nobody who asks for them.
    .target(
      name: "Storage",
      dependencies: [
        "Basics", "CSQLite", nio, system, .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "GRDB", package: "GRDB.swift"),
      ],
      path: "Sources/Server/Storage", exclude: ["CSQLite", "README.md"], cSettings: gnuSource, swiftSettings: house),
    .systemLibrary(name: "CSQLite", path: "Sources/Server/Storage/CSQLite"),

    // Connections, requests, responses, TLS. Knows no stream, playlist or route.
    .target(
      name: "HTTP",
      dependencies: [
        "Basics", "Storage", "Ingest", "CZlib", nio, logging,
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOTLS", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
      ],
      path: "Sources/Server/HTTP", exclude: ["CZlib", "README.md"], cSettings: gnuSource, swiftSettings: house),
    .systemLibrary(
      name: "CZlib", path: "Sources/Server/HTTP/CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),

    // Streams by name, playlists, recordings, configuration: the executable.
    .executableTarget(
      name: "Server",
      dependencies: [
        "FMP4", "Ingest", "Basics", "Storage", "HTTP", "CWeb", "CMachine", nio, logging,
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "ServiceLifecycle", package: "swift-service-lifecycle"),
        .product(name: "UnixSignals", package: "swift-service-lifecycle"),
        .product(name: "GRDB", package: "GRDB.swift"),
        .product(name: "Yams", package: "Yams"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "AsyncHTTPClient", package: "async-http-client"),
      ],
      exclude: [
        "CWeb", "Basics", "Storage", "HTTP", "Commands/Doctor/CMachine",
        "API/README.md", "Access/README.md", "App/README.md", "Commands/README.md", "Configuration/README.md",
        "Events/README.md", "LocalSources/README.md", "Playlists/README.md", "Recording/README.md",
        "Recording/Catalogue/README.md", "Streams/README.md",
      ],
      cSettings: gnuSource,
      swiftSettings: house),
    // The files of web/, embedded by #embed.
    .target(name: "CWeb", path: "Sources/Server/CWeb", cSettings: [.unsafeFlags(["-Wno-c23-extensions"])]),

    .systemLibrary(name: "CMachine", path: "Sources/Server/Commands/Doctor/CMachine"),

    .target(name: "Support", dependencies: ["FMP4", "Ingest", nio], path: "Tests/Support", swiftSettings: testing),
    .testTarget(name: "FMP4Tests", dependencies: ["FMP4", "FMP4Example", "Support", nio], swiftSettings: testing),
    // FMP4 as other packages use it: what is `package` is hidden from it.
    .executableTarget(
      name: "FMP4Example", dependencies: ["FMP4", nio], path: "Tests/FMP4Example", packageAccess: false,
      swiftSettings: testing),
    .testTarget(
      name: "IngestTests",
      dependencies: [
        "Ingest", "FMP4", "Support", "CLibAV", "CProcess", "CProbe", nio, logging,
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
      ],
      exclude: ["Transcode/CProbe"],
      swiftSettings: testing),
    // System calls that a worker must not make, for the tests that try them.
    .systemLibrary(name: "CProbe", path: "Tests/IngestTests/Transcode/CProbe"),
    .testTarget(
      name: "ServerTests",
      dependencies: [
        "Server", "HTTP", "Storage", "Basics", "Ingest", "FMP4", "CChecksum", "Support", nio, logging,
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
        .product(name: "Crypto", package: "swift-crypto"),
        .product(name: "CryptoExtras", package: "swift-crypto"),
        .product(name: "NIOEmbedded", package: "swift-nio"),
        .product(name: "NIOHTTP1", package: "swift-nio"),
        .product(name: "NIOPosix", package: "swift-nio"),
        .product(name: "NIOSSL", package: "swift-nio-ssl"),
        .product(name: "NIOHTTP2", package: "swift-nio-http2"),
        .product(name: "NIOHPACK", package: "swift-nio-http2"),
      ],
      cSettings: gnuSource,
      swiftSettings: testing),
  ],
  swiftLanguageModes: [.v6]
)

// `make fuzz`: the parsers alone, instrumented, below libFuzzer's driver. The server is a library here, without its
// commands, since an executable cannot be part of another one.
if let purpose = Context.environment["WEIR_FUZZ"] {
  // `make fuzz-coverage`: it counts as well how often each line runs.
  let counting = purpose == "coverage" ? ["-profile-generate", "-profile-coverage-mapping"] : []
  let instrumented: [SwiftSetting] =
    house + [.unsafeFlags(["-sanitize=fuzzer,address", "-enable-testing", "-Xcc", "-fsanitize=address"] + counting)]
  let shared = package.targets.filter {
    !["Server", "Support", "FMP4Example"].contains($0.name) && $0.type != .test && $0.name != "CProbe"
  }
  for target in shared where ["Ingest", "FMP4", "Basics", "Storage", "HTTP"].contains(target.name) {
    target.swiftSettings = instrumented
  }
  let server = package.targets.first { $0.name == "Server" }
  package.products = []
  package.targets =
    shared + [
      .target(
        name: "Server", dependencies: server?.dependencies ?? [],
        exclude: (server?.exclude ?? []) + ["Commands/Weir.swift"], cSettings: gnuSource, swiftSettings: instrumented),
      .target(
        name: "Support", dependencies: ["FMP4", "Ingest", nio], path: "Tests/Support",
        sources: ["SenderCapture.swift", "SyntheticMedia.swift", "TimeLiterals.swift"],
        swiftSettings: instrumented),
      .executableTarget(
        name: "Fuzz",
        dependencies: [
          "FMP4", "Ingest", "Basics", "Storage", "HTTP", "Server", "Support", nio, logging,
          .product(name: "GRDB", package: "GRDB.swift"),
          .product(name: "NIOEmbedded", package: "swift-nio"), .product(name: "NIOHTTP1", package: "swift-nio"),
          .product(name: "NIOPosix", package: "swift-nio"),
        ], path: "Tests",
        exclude: ["EndToEndTests", "Fixtures", "Golden"],
        sources: [
          "Fuzz", "IngestTests/RTMP/RTMPScript.swift", "IngestTests/MPEGTS/TransportScript.swift",
          "FMP4Tests/Codecs/RecordFixture.swift", "ServerTests/HTTP/HTTP1/HTTP1Reading.swift",
          "ServerTests/HTTP/HTTP2/HTTP2Reading.swift", "ServerTests/HTTP/HTTP2/HTTP2Bytes.swift",
        ],
        cSettings: gnuSource, swiftSettings: instrumented,
        linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"] + counting.prefix(1))]),
    ]
}

// `make sanitize` for threads: locks, continuations and reference counts that Thread Sanitizer can follow. The file Mutex.swift
// has to be in each module, where its name hides that of Synchronization.
if Context.environment["WEIR_SANITIZER"] == "thread" {
  let folder = "Tests/Sanitizer"
  let following: [SwiftSetting] = [
    .unsafeFlags([
      "\(Context.packageDirectory)/\(folder)/Mutex.swift", "-disable-upcoming-feature", "MemberImportVisibility",
    ])
  ]
  for target in package.targets where ["Ingest", "Basics", "Storage", "HTTP", "Server"].contains(target.name) {
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

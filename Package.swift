// swift-tools-version: 6.2
import PackageDescription

/// Of our own targets: what dependencies warn of is theirs.
let strict: [SwiftSetting] = Context.environment["CLAMOR_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)]

let house: [SwiftSetting] =
    strict + [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
        .enableUpcomingFeature("InferIsolatedConformances"),
        .enableUpcomingFeature("ImmutableWeakCaptures"),
    ]

let nioCore: Target.Dependency = .product(name: "NIOCore", package: "swift-nio")
let nioPosix: Target.Dependency = .product(name: "NIOPosix", package: "swift-nio")
let nioEmbedded: Target.Dependency = .product(name: "NIOEmbedded", package: "swift-nio")
let nioTLS: Target.Dependency = .product(name: "NIOTLS", package: "swift-nio")
let nioHTTP: Target.Dependency = .product(name: "NIOHTTP1", package: "swift-nio")
let nioWebSocket: Target.Dependency = .product(name: "NIOWebSocket", package: "swift-nio")
let nioSSL: Target.Dependency = .product(name: "NIOSSL", package: "swift-nio-ssl")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let cryptoExtras: Target.Dependency = .product(name: "CryptoExtras", package: "swift-crypto")
let x509: Target.Dependency = .product(name: "X509", package: "swift-certificates")
let asn1: Target.Dependency = .product(name: "SwiftASN1", package: "swift-asn1")
let collections: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let heap: Target.Dependency = .product(name: "HeapModule", package: "swift-collections")
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
let arguments: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
/// Of scenario files.
let yams: Target.Dependency = .product(name: "Yams", package: "Yams")
/// The templates of the pages, and of the files that engines run.
let mustache: Target.Dependency = .product(name: "Mustache", package: "swift-mustache")
/// The oracle of the histogram tests; the product has a histogram of its own.
let histogramOracle: Target.Dependency = .product(name: "Histogram", package: "hdrhistogram-swift")

func source(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: house)
}

/// A test compiles twice as fast without optimisation, and what it calls stays optimised; the last flag wins.
let unoptimized: [SwiftSetting] = [.unsafeFlags(["-Onone"])]

/// `optimized` is for tests that compute so much themselves that they would run longer by more than they compile
/// faster.
func test(
    _ name: String,
    _ dependencies: [Target.Dependency],
    data: [String] = [],
    optimized: Bool = false
) -> Target {
    // Data files are read by their path beside the source, so they need no bundle.
    .testTarget(
        name: name,
        dependencies: dependencies,
        exclude: data,
        swiftSettings: optimized ? house : house + unoptimized
    )
}

let package = Package(
    name: "clamor",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "clamor", targets: ["clamor"]),
        .library(name: "MQTT", targets: ["MQTT"]),
        .library(name: "MQTTSQLiteStore", targets: ["MQTTSQLiteStore"]),
        .library(name: "XMPP", targets: ["XMPP"]),
        .library(name: "RunControl", targets: ["RunControl"]),
    ],
    // Exactly the versions that were tested. A figure belongs to one build, and the same sources have to make it again;
    // a new patch of a library must not change what CI checks overnight.
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", exact: "2.101.2"),
        .package(url: "https://github.com/apple/swift-nio-ssl", exact: "2.37.6"),
        .package(url: "https://github.com/apple/swift-crypto", exact: "4.5.2"),
        .package(url: "https://github.com/apple/swift-certificates", exact: "1.21.1"),
        .package(url: "https://github.com/apple/swift-asn1", exact: "1.7.4"),
        .package(url: "https://github.com/groue/GRDB.swift", exact: "7.10.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
        .package(url: "https://github.com/jpsim/Yams", exact: "6.2.2"),
        .package(url: "https://github.com/hummingbird-project/swift-mustache", exact: "2.1.1"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", exact: "0.2.0"),
    ],
    targets: [
        // Floor 0
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .target(name: "CPosix"),
        .target(name: "CBuildFacts"),
        source("DataEncodings", []),
        source("MQTTCodec", [nioCore]),
        source("XMPPCodec", ["DataEncodings", nioCore]),
        source("LoopContext", [nioCore, "CPosix"]),
        source("Ledger", []),
        source("Measurement", ["Ledger", "CZlib", "CPosix", "DataEncodings"]),
        .target(
            name: "SASL",
            dependencies: ["DataEncodings", crypto, cryptoExtras],
            resources: [.embedInCode("Resources")],
            swiftSettings: house
        ),
        source("Charts", []),
        // Floor 1
        source(
            "Transport",
            [
                "LoopContext", "CPosix", "DataEncodings", nioCore, nioPosix, nioTLS, nioSSL, x509, asn1, crypto,
            ]
        ),
        source("FaultInjection", [nioCore, collections]),
        source("LoadEngine", ["LoopContext", "Measurement", nioCore]),
        source("HostFit", ["Measurement"]),
        source("LiveServer", [nioCore, nioPosix, nioHTTP]),
        .target(
            name: "Report",
            dependencies: ["DataEncodings", "Measurement", "Ledger"],
            resources: [.embedInCode("Resources")],
            swiftSettings: house
        ),
        .target(
            name: "Pages",
            dependencies: ["Charts", "Measurement", "Report", mustache],
            resources: [.embedInCode("Resources")],
            swiftSettings: house
        ),
        // Floor 2
        source(
            "MQTT",
            [
                "MQTTCodec", "LoopContext", "Transport", "SASL", "DataEncodings", nioCore, nioPosix, crypto,
                collections, logging,
            ]
        ),
        source(
            "XMPP",
            [
                "XMPPCodec", "LoopContext", "Transport", "SASL", "DataEncodings", "CPosix", nioCore, nioPosix, crypto,
                logging,
            ]
        ),
        source(
            "EmbeddedBroker",
            [
                "MQTTCodec", "LoopContext", "Transport", "FaultInjection", "SASL", nioCore, nioSSL, collections, heap,
            ]
        ),
        source("RunResult", ["Measurement", "Ledger", "LoadEngine", nioCore]),
        source("FaultProxy", ["FaultInjection", "LoopContext", "Transport", nioCore]),
        // Floor 3
        source("MQTTSQLiteStore", ["MQTT", "MQTTCodec", grdb]),
        source(
            "ServerWatch",
            [
                "MQTT", "MQTTCodec", "XMPP", "XMPPCodec", "Transport", "LoopContext", "HostFit", "Measurement", nioCore,
                nioPosix, nioHTTP,
            ]
        ),
        source(
            "Workloads",
            [
                "MQTT", "MQTTCodec", "XMPP", "XMPPCodec", "Transport", "SASL", "LoadEngine", "LoopContext",
                "Measurement", "Ledger", "RunResult", "CPosix", "DataEncodings", nioCore,
            ]
        ),
        source(
            "Coordination",
            [
                "MQTT", "MQTTCodec", "EmbeddedBroker", "LoadEngine", "Measurement", "DataEncodings", "SASL", "CPosix",
                nioCore, nioSSL, crypto,
            ]
        ),
        // Floor 4
        .target(
            name: "Scenario",
            dependencies: [
                "Workloads", "MQTT", "MQTTCodec", "EmbeddedBroker", "FaultInjection", "FaultProxy", "Transport", "SASL",
                "LoadEngine", "Measurement", "Ledger", "HostFit", "RunResult", "Report", "ServerWatch", "Coordination",
                "DataEncodings", nioCore, crypto, yams, mustache,
            ],
            resources: [.embedInCode("Resources")],
            swiftSettings: house
        ),
        // Floor 5
        source(
            "RunControl",
            [
                "Scenario", "Workloads", "MQTT", "MQTTCodec", "EmbeddedBroker", "Transport",
                "LoadEngine", "LoopContext", "Measurement", "Ledger", "HostFit", "RunResult", "Report", "Pages",
                "LiveServer", "ServerWatch", "Coordination", "DataEncodings", "XMPP", "CPosix", "CBuildFacts", nioCore,
                nioPosix, nioSSL, x509, asn1, crypto,
            ]
        ),
        // Floor 6
        .executableTarget(
            name: "clamor",
            dependencies: [
                "Scenario", "RunControl", "Workloads", "EmbeddedBroker", "FaultInjection", "FaultProxy", "Transport",
                "SASL", "LoadEngine", "LoopContext", "Measurement", "HostFit", "RunResult", "Report", "Pages",
                "DataEncodings", "CPosix", nioCore, nioPosix, arguments,
            ],
            resources: [.embedInCode("Resources")],
            swiftSettings: house
        ),
        // Tests
        .target(name: "CSpawn", path: "Tests/Support/CSpawn"),
        .target(
            name: "TestSupport",
            dependencies: ["CSpawn", "LoadEngine", "Measurement", "Report", nioCore, nioPosix, nioEmbedded, logging],
            path: "Tests/Support/TestSupport",
            swiftSettings: house
        ),
        test(
            "CoordinationTests",
            ["Coordination", "MQTT", "MQTTCodec", "LoadEngine", "Measurement", "TestSupport", nioCore]
        ),
        test("DataEncodingsTests", ["DataEncodings"]),
        test("MQTTCodecTests", ["MQTTCodec", "TestSupport", nioCore]),
        .target(
            name: "XMPPErrorNames",
            dependencies: ["XMPPCodec"],
            path: "Tests/Support/XMPPErrorNames",
            swiftSettings: house
        ),
        test("XMPPCodecTests", ["XMPPCodec", "XMPPErrorNames", "TestSupport", nioCore]),
        test("LoopContextTests", ["LoopContext", nioCore, nioPosix, nioEmbedded]),
        test("MeasurementTests", ["Measurement", "Ledger", "DataEncodings", "TestSupport", histogramOracle]),
        test("LedgerTests", ["Ledger", "TestSupport"], optimized: true),
        test("HostFitTests", ["HostFit", "Measurement"]),
        test("SASLTests", ["SASL", "DataEncodings", "TestSupport"], data: ["Tables"]),
        test(
            "TransportTests",
            [
                "Transport", "LoopContext", "TestSupport", nioCore, nioPosix, nioTLS, nioSSL, nioHTTP, nioWebSocket,
                crypto,
            ]
        ),
        test(
            "LoadEngineTests",
            ["LoadEngine", "LoopContext", "Measurement", "TestSupport", nioCore, nioEmbedded]
        ),
        test("RunResultTests", ["RunResult", "Measurement", "Ledger", "LoadEngine", nioCore]),
        test("ChartsTests", ["Charts", "TestSupport"], data: ["Golden"]),
        test(
            "PagesTests",
            ["Pages", "Charts", "Measurement", "Report", "RunResult", "TestSupport"],
            data: ["Browser"]
        ),
        // A process that the report's tests start on a terminal of their own.
        .executableTarget(
            name: "BoardPlayer",
            dependencies: ["Report", "Measurement"],
            path: "Tests/Support/BoardPlayer",
            swiftSettings: house
        ),
        test("ReportTests", ["Report", "Measurement", "Ledger", "BoardPlayer", "TestSupport"], data: ["Golden"]),
        test(
            "LiveServerTests",
            ["LiveServer", "Report", "Measurement", "TestSupport", nioCore, nioPosix]
        ),
        test(
            "MQTTTests",
            [
                "MQTT", "MQTTCodec", "LoopContext", "Transport", "SASL", "EmbeddedBroker", "TestSupport", nioCore,
                nioPosix, nioEmbedded, logging,
            ]
        ),
        test(
            "XMPPTests",
            [
                "XMPP", "XMPPCodec", "DataEncodings", "LoopContext", "Transport", "SASL", "TestSupport", nioCore,
                nioPosix,
                nioEmbedded, logging,
            ]
        ),
        // A process that the store's tests start, and kill.
        .executableTarget(
            name: "StoreVictim",
            dependencies: ["MQTTSQLiteStore", "MQTT", "MQTTCodec"],
            path: "Tests/Support/StoreVictim",
            swiftSettings: house
        ),
        test("MQTTSQLiteStoreTests", ["MQTTSQLiteStore", "MQTT", "MQTTCodec", "StoreVictim", "TestSupport", grdb]),
        test(
            "ConformanceTests",
            ["MQTT", "Transport", "EmbeddedBroker", "TestSupport", nioSSL],
            data: ["README.md", "Coverage"]
        ),
        // Faults of the broker as the tests write them.
        .target(
            name: "FaultLines",
            dependencies: ["EmbeddedBroker", "FaultInjection", nioCore],
            path: "Tests/Support/FaultLines",
            swiftSettings: house
        ),
        test("FaultInjectionTests", ["FaultInjection", "TestSupport", nioCore]),
        test("FaultProxyTests", ["FaultProxy", "FaultInjection", "Transport", "TestSupport", nioCore, nioPosix]),
        test(
            "EmbeddedBrokerTests",
            [
                "EmbeddedBroker", "FaultInjection", "FaultLines", "MQTTCodec", "Transport", "SASL", "TestSupport",
                nioCore, nioPosix, nioSSL,
            ]
        ),
        test(
            "ServerWatchTests",
            [
                "ServerWatch", "MQTT", "MQTTCodec", "XMPP", "Transport", "LoopContext", "Measurement", "Report",
                "TestSupport", nioCore, nioPosix, nioHTTP,
            ]
        ),
        test(
            "WorkloadsTests",
            [
                "Workloads", "MQTT", "MQTTCodec", "XMPPCodec", "LoadEngine", "LoopContext", "Measurement", "Ledger",
                "RunResult", "Transport", "EmbeddedBroker", "FaultInjection", "FaultLines", "SASL", "TestSupport",
                "VirtualServers", nioCore, nioEmbedded,
            ]
        ),
        // Servers' cores without sockets, on a clock that tests move.
        .target(
            name: "VirtualServers",
            dependencies: [
                "EmbeddedBroker", "FaultInjection", "LoadEngine", "MQTTCodec", "XMPPCodec", "Transport", "TestSupport",
                nioCore, nioEmbedded,
            ],
            path: "Tests/Support/VirtualServers",
            swiftSettings: house
        ),
        test(
            "RunControlTests",
            [
                "RunControl", "Scenario", "clamor", "VirtualServers", "Coordination", "EmbeddedBroker",
                "FaultInjection",
                "Measurement", "Report", "RunResult", "TestSupport", nioCore, nioEmbedded,
            ]
        ),
        test(
            "clamorTests",
            [
                "clamor", "Scenario", "RunControl", "Coordination", "MQTTCodec", "Measurement", "HostFit", "RunResult",
                "Report", "LoadEngine",
                "Workloads", "EmbeddedBroker", "FaultInjection", "FaultLines", "FaultProxy", "SASL", "Transport",
                "TestSupport", nioCore, nioPosix,
            ]
        ),
        .target(name: "CFuzzing", path: "Tests/Support/CFuzzing"),
        .target(
            name: "Fuzzing",
            dependencies: [
                "EmbeddedBroker", "MQTT", "MQTTCodec", "XMPP", "XMPPCodec", "LoopContext", "Transport", "SASL",
                "Measurement", "Report", "RunResult", "Pages", "XMPPErrorNames", "FaultLines", "TestSupport",
                "CFuzzing", nioCore, nioEmbedded,
            ],
            path: "Tests/Support/Fuzzing",
            exclude: ["README.md"],
            swiftSettings: house
        ),
        // A process of the fuzzer, which the tests and `make fuzz` start.
        .executableTarget(
            name: "clamor-fuzz",
            dependencies: ["Fuzzing", "CFuzzing", "TestSupport"],
            path: "Tests/Support/ClamorFuzz",
            swiftSettings: house
        ),
        test("FuzzingTests", ["Fuzzing", "clamor-fuzz", "TestSupport"]),
        test(
            "IntegrationTests",
            [
                "clamor", "MQTT", "Measurement", "Ledger", "Report", "MQTTCodec", "TestSupport",
                nioCore, nioPosix,
            ]
        ),
        // The benchmark that every change runs: it counts, and needs no package of others.
        .target(
            name: "BenchmarkWork",
            dependencies: [
                "MQTTCodec", "XMPPCodec", "MQTT", "EmbeddedBroker", "LoopContext", "LoadEngine", "Measurement",
                "Ledger", "Report", nioCore,
            ],
            path: "Benchmarks/BenchmarkWork",
            swiftSettings: house
        ),
        .executableTarget(
            name: "BenchmarkGate",
            dependencies: ["BenchmarkWork"],
            path: "Benchmarks/Gate/BenchmarkGate",
            swiftSettings: house,
            // Valgrind gives up on the compiler's DWARF 5. Function names stay: it counts between entry and return of
            // one.
            linkerSettings: [.unsafeFlags(["-Xlinker", "--strip-debug"])]
        ),
    ]
)

// The dependency of the suites builds for minutes, so only those who ask for it pay.
if Context.environment["CLAMOR_BENCHMARKS"] != nil {
    let benchmark: Target.Dependency = .product(name: "Benchmark", package: "benchmark")
    package.dependencies.append(.package(url: "https://github.com/ordo-one/benchmark", exact: "1.38.1", traits: []))

    // The plugin takes each program right below Benchmarks for one of its own.
    func suite(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
        .executableTarget(
            name: name,
            dependencies: ["BenchmarkSupport", benchmark] + dependencies,
            path: "Benchmarks/\(name)",
            swiftSettings: house,
            linkerSettings: [.linkedLibrary("jemalloc")],
            plugins: [.plugin(name: "BenchmarkPlugin", package: "benchmark")]
        )
    }
    package.targets += [
        .target(
            name: "BenchmarkSupport",
            dependencies: ["BenchmarkWork", benchmark],
            path: "Benchmarks/BenchmarkSupport",
            swiftSettings: house
        ),
        suite("MQTTCodecBenchmarks", ["BenchmarkWork"]),
        suite("XMPPCodecBenchmarks", ["BenchmarkWork"]),
        suite("SessionBenchmarks", ["BenchmarkWork"]),
        suite("EngineBenchmarks", ["BenchmarkWork"]),
        suite("ReportBenchmarks", ["BenchmarkWork"]),
        suite(
            "LoopbackBenchmarks",
            [
                "Workloads", "MQTT", "MQTTCodec", "EmbeddedBroker", "Transport", "LoadEngine", "LoopContext", nioCore,
                nioPosix,
            ]
        ),
    ]

    // `make limits`: the plain C program, which needs nothing but a C compiler, and what compares Clamor with it.
    package.products += [
        .executable(name: "climit", targets: ["CLimit"]), .executable(name: "limits", targets: ["Limits"]),
    ]
    package.targets += [
        .executableTarget(
            name: "CLimit",
            path: "Benchmarks/CLimit",
            linkerSettings: ["ssl", "crypto", "expat", "mosquitto"].map { .linkedLibrary($0) }
        ),
        // For `make check-coordinator`.
        .executableTarget(
            name: "StubSegments",
            dependencies: ["Coordination", "Measurement", "Report"],
            path: "Benchmarks/Answers/StubSegments",
            swiftSettings: house
        ),
        .executableTarget(
            name: "Limits",
            dependencies: [
                "MQTT", "MQTTSQLiteStore", "MQTTCodec", "XMPPCodec", "Measurement", "Ledger", "Report", "CPosix",
                nioCore,
            ],
            path: "Benchmarks/Limits",
            swiftSettings: house
        ),
    ]
}

// With the path of libFuzzer's runtime the code under test counts which branches are taken, and libFuzzer steers by it.
if let runtime = Context.environment["CLAMOR_LIBFUZZER"] {
    let coverage: [SwiftSetting] = [.unsafeFlags(["-sanitize=fuzzer"])]
    let underTest = ["MQTTCodec", "MQTT", "EmbeddedBroker", "LoopContext", "XMPPCodec"]
    for target in package.targets where underTest.contains(target.name) {
        target.swiftSettings = (target.swiftSettings ?? []) + coverage
    }
    for target in package.targets where target.name == "clamor-fuzz" {
        target.swiftSettings = house + [.define("CLAMOR_LIBFUZZER")]
        target.linkerSettings = [.unsafeFlags([runtime]), .linkedLibrary("stdc++")]
    }
}

// Builds only the named targets and their dependencies: CLAMOR_ONLY=SASLTests,TransportTests swift build --build-tests
if let names = Context.environment["CLAMOR_ONLY"], !names.isEmpty {
    var wanted = Set(names.split(separator: ",").map(String.init))
    var packages: Set<String> = []
    var isComplete = false
    while !isComplete {
        let before = wanted.count
        for dependency in package.targets.filter({ wanted.contains($0.name) }).flatMap(\.dependencies) {
            switch dependency {
            case .byNameItem(let name, _), .targetItem(let name, _): wanted.insert(name)
            case .productItem(_, let package?, _, _): packages.insert(package)
            default: break
            }
        }
        isComplete = wanted.count == before
    }
    package.targets.removeAll { !wanted.contains($0.name) }
    package.products.removeAll { product in
        let targets = (product as? Product.Library)?.targets ?? (product as? Product.Executable)?.targets ?? []
        return !targets.allSatisfy(wanted.contains)
    }
    package.dependencies.removeAll { dependency in
        guard case .sourceControl(_, let location, _) = dependency.kind else { return false }
        return !packages.contains { location.hasSuffix("/\($0)") }
    }
}

// The documentation of the libraries: CLAMOR_DOCC=1 swift package generate-documentation --target MQTT. The guides link
// to files as GitHub does; `.ci/api site` makes a site of them.
if Context.environment["CLAMOR_DOCC"] != nil {
    package.dependencies.append(.package(url: "https://github.com/swiftlang/swift-docc-plugin", exact: "1.5.0"))
}

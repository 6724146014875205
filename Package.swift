// swift-tools-version: 6.2
import PackageDescription

let house: [SwiftSetting] = [
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
let collections: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")
let arguments: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
/// The oracle of the histogram tests; the product has a histogram of its own.
let histogramOracle: Target.Dependency = .product(name: "Histogram", package: "hdrhistogram-swift")

func source(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .target(name: name, dependencies: dependencies, swiftSettings: house)
}

func test(_ name: String, _ dependencies: [Target.Dependency], data: [String] = []) -> Target {
    // Data files are read by their path beside the source, so they need no bundle.
    .testTarget(name: name, dependencies: dependencies, exclude: data, swiftSettings: house)
}

let package = Package(
    name: "clamor",
    platforms: [.macOS(.v15)],
    products: [
        .executable(name: "clamor", targets: ["clamor"])
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    ],
    targets: [
        // Floor 0
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .target(name: "CPosix"),
        source("MQTTCodec", [nioCore]),
        source("LoopContext", [nioCore, "CPosix"]),
        source("Measurement", ["CZlib", "CPosix"]),
        // Floor 1
        source("Transport", ["LoopContext", "CPosix", nioCore, nioPosix]),
        source("LoadEngine", ["LoopContext", nioCore]),
        source("Report", ["Measurement"]),
        // Floor 2
        source("MQTT", ["MQTTCodec", "LoopContext", nioCore]),
        source("EmbeddedBroker", ["MQTTCodec", "LoopContext", nioCore, nioPosix, collections]),
        // Floor 3
        source(
            "Workloads",
            ["MQTT", "MQTTCodec", "Transport", "LoadEngine", "LoopContext", "Measurement", "CPosix", nioCore]
        ),
        // Floor 4
        .executableTarget(
            name: "clamor",
            dependencies: [
                "Workloads", "MQTT", "MQTTCodec", "EmbeddedBroker", "Transport", "LoadEngine", "LoopContext",
                "Measurement", "Report", "CPosix", nioCore, nioPosix, arguments,
            ],
            swiftSettings: house
        ),
        // Tests
        .target(
            name: "TestSupport",
            dependencies: [nioCore, nioPosix],
            path: "Tests/TestSupport",
            swiftSettings: house
        ),
        test("MQTTCodecTests", ["MQTTCodec", "TestSupport", nioCore]),
        test("LoopContextTests", ["LoopContext", nioCore, nioEmbedded]),
        test("MeasurementTests", ["Measurement", "TestSupport", histogramOracle]),
        test("TransportTests", ["Transport", "LoopContext", "TestSupport", nioCore, nioPosix]),
        test("LoadEngineTests", ["LoadEngine", "LoopContext", "TestSupport", nioCore, nioPosix, nioEmbedded]),
        test("ReportTests", ["Report", "Measurement", "TestSupport"], data: ["Golden"]),
        test(
            "MQTTTests",
            ["MQTT", "MQTTCodec", "LoopContext", "Transport", "TestSupport", nioCore, nioPosix, nioEmbedded]
        ),
        test("EmbeddedBrokerTests", ["EmbeddedBroker", "MQTTCodec", "TestSupport", nioCore, nioPosix]),
        test(
            "WorkloadsTests",
            [
                "Workloads", "MQTT", "MQTTCodec", "LoadEngine", "LoopContext", "Measurement", "Transport",
                "EmbeddedBroker", "TestSupport", nioCore, nioEmbedded,
            ]
        ),
        test("clamorTests", ["clamor", "Measurement", "Report", "LoadEngine", "Workloads", "TestSupport"]),
        .target(name: "CFuzzing", path: "Tests/CFuzzing"),
        .target(
            name: "Fuzzing",
            dependencies: [
                "EmbeddedBroker", "MQTT", "MQTTCodec", "LoopContext", "TestSupport", "CFuzzing", nioCore, nioEmbedded,
            ],
            path: "Tests/Fuzzing",
            exclude: ["README.md"],
            swiftSettings: house
        ),
        test("FuzzingTests", ["Fuzzing", "CFuzzing", "TestSupport"]),
        test("IntegrationTests", ["clamor", "Measurement", "Report", "MQTTCodec", "TestSupport", nioCore, nioPosix]),
    ]
)

// The benchmarks' own dependency builds for minutes, so only those who ask for it pay.
if Context.environment["CLAMOR_BENCHMARKS"] != nil {
    let benchmark: Target.Dependency = .product(name: "Benchmark", package: "benchmark")
    package.dependencies.append(.package(url: "https://github.com/ordo-one/benchmark", from: "1.38.0", traits: []))

    func library(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
        .target(name: name, dependencies: dependencies, path: "Benchmarks/\(name)", swiftSettings: house)
    }
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
        library(
            "BenchmarkWork",
            [
                "MQTTCodec", "MQTT", "EmbeddedBroker", "LoopContext", "LoadEngine", "Measurement", "Report", nioCore,
            ]
        ),
        library("BenchmarkSupport", ["BenchmarkWork", benchmark]),
        .executableTarget(
            name: "BenchmarkGate",
            dependencies: ["BenchmarkWork"],
            path: "Benchmarks/Gate/BenchmarkGate",
            swiftSettings: house,
            // Valgrind gives up on the compiler's DWARF 5. Function names stay: it counts between entry and return of one.
            linkerSettings: [.unsafeFlags(["-Xlinker", "--strip-debug"])]
        ),
        suite("MQTTCodecBenchmarks", ["BenchmarkWork"]),
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
}

// `make limits`: the plain C program, which needs nothing but a C compiler, and what compares Clamor with it.
if Context.environment["CLAMOR_BENCHMARKS"] != nil {
    package.products += [
        .executable(name: "climit", targets: ["CLimit"]), .executable(name: "limits", targets: ["Limits"]),
    ]
    package.targets += [
        .executableTarget(name: "CLimit", path: "Benchmarks/CLimit"),
        .executableTarget(
            name: "Limits",
            dependencies: ["MQTTCodec", "Measurement", "Report", "CPosix"],
            path: "Benchmarks/Limits",
            swiftSettings: house
        ),
    ]
}

// The long runs of the fuzzer. With the path of libFuzzer's runtime for its value the code under test counts which
// branches are taken, and libFuzzer steers by it.
if let runtime = Context.environment["CLAMOR_FUZZ"] {
    let hasLibFuzzer = runtime.hasSuffix(".a")
    let coverage: [SwiftSetting] = hasLibFuzzer ? [.unsafeFlags(["-sanitize=fuzzer"])] : []
    let underTest = ["MQTTCodec", "MQTT", "EmbeddedBroker", "LoopContext"]
    for target in package.targets where underTest.contains(target.name) {
        target.swiftSettings = (target.swiftSettings ?? []) + coverage
    }
    package.targets.append(
        .executableTarget(
            name: "clamor-fuzz",
            dependencies: ["Fuzzing", "CFuzzing", "TestSupport"],
            path: "Tests/ClamorFuzz",
            swiftSettings: house + (hasLibFuzzer ? [.define("CLAMOR_LIBFUZZER")] : []),
            linkerSettings: hasLibFuzzer ? [.unsafeFlags([runtime]), .linkedLibrary("stdc++")] : []
        )
    )
}

import BenchmarkWork
import Foundation

/// The expected figures, one file for each Swift version and architecture: the compiler makes the instructions.
struct ThresholdFile {
    struct Contents: Codable {
        /// Other influences on the figures, reported if they do not hold.
        var madeWith: [String: String]
        /// How far a figure may be off, up or down.
        var tolerancePercent: Double
        /// By suite and name.
        var expected: [String: [String: Need]]
    }

    static let defaultTolerance = 2.0

    let folder: String
    let swift: SwiftVersion
    let architecture: String

    init(folder: String) throws {
        self.folder = folder
        self.swift = try SwiftVersion.current()
        self.architecture = Self.architectureName
    }

    var path: String { "\(self.folder)/\(self.swift.minor)/\(self.architecture).json" }

    /// The content of the file; `nil` if there is none.
    func read() throws -> Contents? {
        guard FileManager.default.fileExists(atPath: self.path) else { return nil }
        do {
            return try JSONDecoder().decode(Contents.self, from: Data(contentsOf: URL(filePath: self.path)))
        } catch {
            throw GateError("\(self.path) is damaged: \(error)")
        }
    }

    func write(_ contents: Contents) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        let folder = URL(filePath: self.path).deletingLastPathComponent()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try (encoder.encode(contents) + Data("\n".utf8)).write(to: URL(filePath: self.path))
    }

    /// Versions of what the figures depend on besides the sources here.
    var makers: [String: String] {
        var makers = ["swift": self.swift.full, "libc": Self.libraryVersion]
        for package in ["swift-nio", "swift-collections"] { makers[package] = Self.resolvedVersion(of: package) }
        return makers
    }

    /// As the C library names itself: glibc 2.36.
    private static var libraryVersion: String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 64) { text in
            guard let base = text.baseAddress, confstr(CInt(_CS_GNU_LIBC_VERSION), base, text.count) > 0 else {
                return "unknown"
            }
            return String(cString: base)
        }
    }

    /// From the file that the package manager leaves beside the manifest.
    private static func resolvedVersion(of package: String) -> String? {
        struct Resolved: Decodable {
            struct Pin: Decodable {
                struct State: Decodable { var version: String? }
                var identity: String
                var state: State
            }
            var pins: [Pin]
        }
        let data = try? Data(contentsOf: URL(filePath: "Package.resolved"))
        let resolved = data.flatMap { try? JSONDecoder().decode(Resolved.self, from: $0) }
        return resolved?.pins.first { $0.identity == package }?.state.version
    }

    private static var architectureName: String {
        #if arch(x86_64)
        "x86_64"
        #elseif arch(arm64)
        "aarch64"
        #else
        "other"
        #endif
    }
}

/// The compiler's version, which is the builder's: both are started from the same search path.
struct SwiftVersion {
    /// With the patch release: 6.3.1.
    let full: String
    /// Without it: 6.3.
    var minor: String { self.full.split(separator: ".").prefix(2).joined(separator: ".") }

    static func current() throws -> SwiftVersion {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["swiftc", "--version"]
        let output = Pipe()
        process.standardOutput = output
        process.standardError = FileHandle.nullDevice
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        guard let version = text.firstMatch(of: /Swift version ([0-9]+\.[0-9]+(\.[0-9]+)?)/) else {
            throw GateError("'swiftc --version' does not say which it is")
        }
        return SwiftVersion(full: String(version.1))
    }
}

import EmbeddedBroker
import Foundation
import MQTT
import TestSupport
import Testing

@Suite("The library as a product")
struct ClientProductTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    @Test("the article's example is the one that is built here, and does what it says")
    func example() async throws {
        let article = try String(
            contentsOf: Self.root.appending(path: "Sources/MQTT/MQTT.docc/GettingStarted.md"),
            encoding: .utf8
        )
        let source = try String(
            contentsOf: Self.root.appending(path: "Tests/MQTTTests/ClientExample.swift"),
            encoding: .utf8
        )
        let example = try #require(source.split(separator: "// ---\n", maxSplits: 1).last)
        #expect(article.contains("```swift\n\(example)```\n"))
        try await withBroker { broker in
            let greetings = try await sayHello(host: "127.0.0.1", port: UInt16(broker.port))
            #expect(greetings == ["hello, Ada", "hello, Grace"])
        }
    }

    @Test("another package sees all of the face by one import, and only what is public")
    func otherPackage() async throws {
        let products = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        let source = Self.root.appending(path: "Tests/PackageClient/Sources/PackageClient/main.swift")
        // The modules that this test was built with, and the headers of the C targets among the dependencies.
        var arguments = [
            "swiftc", "-typecheck", "-swift-version", "6", "-package-name", "package_client",
            "-I", products.appending(path: "Modules").path,
        ]
        for map in Self.moduleMaps(products) { arguments += ["-Xcc", "-fmodule-map-file=\(map)"] }
        let ending = try await RunningProgram("/usr/bin/env", arguments + [source.path]).ended()
        #expect(ending.status == 0, "\(ending.errors)")
    }

    /// Those of the dependencies' C targets: written by hand, or made by the build.
    private static func moduleMaps(_ products: URL) -> [String] {
        let build = products.deletingLastPathComponent().deletingLastPathComponent()
        let checkouts = build.appending(path: "checkouts").path
        guard let files = FileManager.default.enumerator(atPath: checkouts) else { return [] }
        let made = (try? FileManager.default.contentsOfDirectory(atPath: products.path)) ?? []
        // Build tools for plugins and macros have their own copies of the modules.
        var maps = made.filter { !$0.hasSuffix("-tool.build") }.map { "\(products.path)/\($0)/module.modulemap" }
            .filter { FileManager.default.fileExists(atPath: $0) }
        while let path = files.nextObject() as? String {
            if path.hasSuffix("include/module.modulemap") { maps.append("\(checkouts)/\(path)") }
        }
        return maps
    }
}

import Foundation

/// Programs of another package (`Tests/Support/PackageClient`), which see what is public of the libraries.
package enum PackageClient {
    private static let sources = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appending(path: "PackageClient/Sources")

    /// Compiles a program against the modules that the tests were built with, without making one.
    ///
    /// - Parameter name: its target, which has one file.
    /// - Returns: the errors of the compiler; `nil` for none.
    /// - Throws: the reason why the compiler cannot be run.
    package static func errors(of name: String) async throws -> String? {
        let products = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        let source = Self.sources.appending(path: "\(name)/main.swift")
        // The modules, and the headers of the C targets among the dependencies.
        var arguments = [
            "swiftc", "-typecheck", "-swift-version", "6", "-package-name", "package_client",
            "-I", products.appending(path: "Modules").path,
        ]
        for map in Self.moduleMaps(products) { arguments += ["-Xcc", "-fmodule-map-file=\(map)"] }
        let ending = try await RunningProgram("/usr/bin/env", arguments + [source.path]).ended()
        return ending.status == 0 ? nil : ending.errors
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

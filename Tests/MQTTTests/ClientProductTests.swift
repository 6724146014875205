import EmbeddedBroker
import Foundation
import MQTT
import NIOCore
import NIOPosix
import TestSupport
import Testing

@Suite("The library as a product")
struct ClientProductTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    /// Compares an article's example with the source that is built here.
    private static func compare(_ article: String, _ source: String) throws {
        let article = try String(
            contentsOf: Self.root.appending(path: "Sources/MQTT/MQTT.docc/\(article).md"),
            encoding: .utf8
        )
        let source = try String(
            contentsOf: Self.root.appending(path: "Tests/MQTTTests/\(source).swift"),
            encoding: .utf8
        )
        let example = try #require(source.split(separator: "// ---\n", maxSplits: 1).last)
        #expect(article.contains("```swift\n\(example)```\n"))
    }

    @Test("the example of the article about connecting is the one that is built here, and does what it says")
    func connecting() async throws {
        try Self.compare("WaysToServer", "ConnectingExample")
        let folder = try ScratchFolder()
        let path = "\(folder.path)/mqtt"
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(SmallServer()) }
            }
            .bind(unixDomainSocketPath: path)
            .get()
        try await withBroker { broker in
            let manager = try await moveToSocket(path, from: "127.0.0.1", port: UInt16(broker.port))
            #expect(manager.configuration.keepAliveJitter == 0.2 && manager.configuration.will?.topic == "status")
            await manager.shutDown()
        }
        try await server.close()
    }

    @Test("the article's example is the one that is built here, and does what it says")
    func example() async throws {
        try Self.compare("GettingStarted", "ClientExample")
        try await withBroker { broker in
            let greetings = try await sayHello(host: "127.0.0.1", port: UInt16(broker.port))
            #expect(greetings == ["hello, Ada", "hello, Grace"])
        }
    }

    @Test("another package sees all of the face by one import, and only what is public")
    func otherPackage() async throws {
        let errors = try await PackageClient.errors(of: "PackageClient")
        #expect(errors == nil, "\(errors ?? "")")
    }
}

// swift-tools-version: 6.2
import PackageDescription

// Another package that depends on the products: what it can see is what is public.
let package = Package(
    name: "package-client",
    platforms: [.macOS(.v15)],
    dependencies: [.package(name: "clamor", path: "../../..")],
    targets: [
        .executableTarget(name: "PackageClient", dependencies: [.product(name: "MQTT", package: "clamor")]),
        .executableTarget(name: "PackageXMPP", dependencies: [.product(name: "XMPP", package: "clamor")]),
    ]
)

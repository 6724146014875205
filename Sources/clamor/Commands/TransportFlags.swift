import ArgumentParser

/// What stands between TCP and MQTT: TLS, a WebSocket, a PROXY header.
struct TransportFlags: ParsableArguments {
    @Option(
        name: [.customShort("S", allowingJoined: true), .long],
        defaultAsFlag: "true",
        parsing: .next,
        help: ArgumentHelp("TLS, with the certificate verified. (default: false)", valueName: "true|false")
    ) var ssl: String?

    @Option(
        name: .long,
        help: ArgumentHelp("A pre-shared key instead of certificates (TLS 1.2). Shown nowhere.", valueName: "id:hex")
    ) var psk: String?

    @Option(name: .long, help: ArgumentHelp("A file that holds it: one line ID:HEX.", valueName: "file"))
    var pskFile: String?

    @Option(name: .long, help: ArgumentHelp("Protocols offered by ALPN, such as mqtt.", valueName: "name,..."))
    var alpn: String?

    @Option(
        name: .long,
        help: ArgumentHelp("A PROXY header in front of everything: v1 or v2.", valueName: "version")
    ) var proxyProtocol: String?
}

/// Whom TLS trusts, and what it shows.
struct CertificateFlags: ParsableArguments {
    @Option(
        name: [.long, .customLong("ca")],
        help: ArgumentHelp("PEM file with the CAs that are trusted. (default: the system's)", valueName: "file")
    ) var cacertfile: String?

    @Option(
        name: [.long, .customLong("cert")],
        help: ArgumentHelp("PEM file with the client's certificate; with %i in it one per client.", valueName: "file")
    ) var certfile: String?

    @Option(
        name: [.long, .customLong("key")],
        help: ArgumentHelp("PEM file with its private key; %i as well.", valueName: "file")
    ) var keyfile: String?

    @Flag(name: .long, help: "Take any certificate: neither issuer nor name is verified.") var insecure = false

    @Option(
        name: .long,
        help: ArgumentHelp(
            "The server's key must be this one: sha256/BASE64 of its public key, or a file with its certificate. Repeatable.",
            valueName: "pin"
        )
    ) var pin: [String] = []

    @Option(
        name: .long,
        help: ArgumentHelp("1.2, 1.3, or a range such as 1.2-1.3. (default: 1.2-1.3)", valueName: "version")
    ) var tlsVersion: String?

    @Option(
        name: .long,
        help: ArgumentHelp("Cipher suites of TLS 1.2, in OpenSSL's notation.", valueName: "list")
    ) var ciphers: String?

    @Option(
        name: .long,
        help: ArgumentHelp(
            "The name that is asked for and verified. (default: the host, if it is a name)",
            valueName: "name"
        )
    ) var sni: String?
}

struct WebSocketFlags: ParsableArguments {
    @Flag(name: .long, help: "Over WebSocket; the port is then 80, with TLS 443, unless -p says another.")
    var ws = false

    @Option(
        name: .long,
        help: ArgumentHelp("Path of the WebSocket. (default: /mqtt, with xmpp /ws)", valueName: "path")
    )
    var path: String?

    @Option(
        name: [.long, .customLong("ws-headers")],
        parsing: .singleValue,
        help: ArgumentHelp("Header of the WebSocket's request, 'Name: value'. Repeatable.", valueName: "header")
    ) var header: [String] = []
}

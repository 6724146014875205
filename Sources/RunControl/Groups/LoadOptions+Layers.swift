import DataEncodings
import LoopContext
import MQTT
import Measurement
import Scenario
import Transport
import Workloads
import XMPP

/// The layers between TCP and the protocol, checked before the first socket is opened; shared by all event loops.
struct RunLayers: Sendable {
    let proxy: ProxyProtocol?
    let tls: TLSContext?
    let webSocket: WebSocketSettings?
    /// TLS starts later, when both sides have agreed to it (STARTTLS).
    private let defersTLS: Bool

    /// - Parameters:
    ///   - options: the options of the command line.
    ///   - authority: PEM file of the embedded broker's certificate, created for this run.
    ///   - xmpp: settings for XMPP clients with TLS.
    ///   - names: of settings, in messages.
    /// - Throws: an error in the files or in the combination of settings.
    init(
        _ options: LoadOptions,
        trusting authority: String? = nil,
        xmpp: XMPPLoad.TLSPolicy? = nil,
        names: OptionNames
    ) throws(RunRefusal) {
        self.defersTLS = xmpp.map { $0 != .direct } ?? false
        self.proxy = options.transport.proxy
        do throws(TLSSettingsError) {
            self.tls = try options.tlsSettings(trusting: authority).map { settings throws(TLSSettingsError) in
                try TLSContext(settings)
            }
        } catch {
            let tls = options.transport.tls
            let usual: OptionWords = xmpp == nil ? "\(\.ssl)" : "\(\.xmppTLS)"
            let option = tls.flatMap { Self.option(of: error, $0) } ?? usual
            throw RunRefusal("\(names.text(option)): \(Self.words(error, pins: tls?.pins ?? []))")
        }
        do throws(WebSocketSettings.Problem) {
            self.webSocket = try options.transport.webSocket.map { options throws(WebSocketSettings.Problem) in
                let headers = options.headers.map { ($0.name, $0.value) }
                return xmpp == nil
                    ? try WebSocketSettings(path: options.path, subprotocols: options.subprotocols, headers: headers)
                    : try WebSocketSettings.xmpp(path: options.path, headers: headers)
            }
        } catch {
            throw RunRefusal("\(names.text("\(\.ws)")): \(error)")
        }
    }

    private static func words(_ error: TLSSettingsError, pins: [String]) -> String {
        guard case .unreadable(let path, let reason) = error else { return "\(error)" }
        if pins.contains(path), !path.contains("/"), !path.contains(".") {
            return "'\(path)' is no pin; write sha256/BASE64, or the path of a file with the server's certificate"
        }
        return "cannot read \(path) (\(reason.prefix(1).lowercased() + reason.dropFirst())); "
            + "check the path and its permissions"
    }

    private static func option(of error: TLSSettingsError, _ tls: TransportOptions.TLS) -> OptionWords? {
        switch error {
        case .unreadable(let path, _), .malformed(let path, _), .isDER(let path), .isPEM(let path):
            let paths: [(OptionWords, String?)] = [
                ("\(\.caFile)", tls.caFile), ("\(\.certificateFile)", tls.certificateFile),
                ("\(\.keyFile)", tls.keyFile),
            ]
            // The path of a client's own certificate has a number in place of the option's %i.
            let option = paths.first { _, given in
                given.map { $0 == path || $0.contains("%i") && path.hasPrefix($0.prefix { $0 != "%" }) } ?? false
            }
            return option?.0 ?? (tls.pins.contains(path) ? "\(\.pin)" as OptionWords : nil)
        case .certificateWithoutKey: return "\(\.certificateFile)"
        case .keyWithoutCertificate, .keyMismatch, .numberInOnePathOnly: return "\(\.keyFile)"
        case .pskKey, .pskIdentity, .pskWithCertificates: return "\(\.preSharedKey)"
        case .versions, .version: return "\(\.tlsVersion)"
        case .cipher: return "\(\.ciphers)"
        case .applicationProtocol: return "\(\.alpn)"
        case .serverName: return "\(\.serverName)"
        case .pin, .noPins: return "\(\.pin)"
        case .keyLog: return "SSLKEYLOGFILE"
        case .serverWithoutCertificate, .refused: return nil
        }
    }

    /// Creates the layers of one event loop; must be called on the loop.
    func make(on loop: LoopContext) -> [any ConnectLayer] {
        var layers: [any ConnectLayer] = []
        if let proxy = self.proxy { layers.append(ProxyLayer(proxy)) }
        if let tls = self.tls, !self.defersTLS { layers.append(TLSLayer(tls, loop: loop)) }
        if let webSocket = self.webSocket {
            layers.append(WebSocketLayer(webSocket, isSecure: self.tls != nil, receive: loop.receive))
        }
        return layers
    }
}

extension LoadOptions {
    /// Whether the protocol speaks over TCP alone, to addresses or to names that the system looks up.
    var isPlain: Bool {
        if case .service = self.target { return false }
        return self.transport.proxy == nil && self.transport.tls == nil && self.transport.webSocket == nil
    }

    /// The kind of the clients' sockets of a run of these groups: they share their event loops.
    static func sockets(of groups: [LoadOptions]) -> SocketKind {
        groups.first?.sockets ?? (SocketLoop.isAvailable && groups.allSatisfy(\.isPlain) ? .socket : .nio)
    }

    fileprivate func tlsSettings(trusting authority: String?) throws(TLSSettingsError) -> TLSSettings? {
        guard let tls = self.transport.tls else { return nil }
        var settings = TLSSettings()
        settings.verifies = !tls.isInsecure
        settings.authorityFile = tls.caFile ?? authority
        settings.serverName = tls.serverName
        settings.xmppDomain = tls.domain
        settings.applicationProtocols = tls.alpn
        settings.minimumVersion = tls.versions.lowerBound
        // Without a given version the library's newest is used, limited by a pre-shared key.
        if tls.versions != .v1_2 ... .v1_3 { settings.maximumVersion = tls.versions.upperBound }
        settings.ciphers = tls.ciphers.map { $0.split(whereSeparator: { ":,".contains($0) }).map(String.init) } ?? []
        settings.certificateFile = tls.certificateFile
        settings.keyFile = tls.keyFile
        settings.firstClientNumber = self.startNumber + 1
        settings.preSharedKey = try tls.psk.map { psk throws(TLSSettingsError) in
            try TLSPreSharedKey(identity: psk.identity, hexKey: psk.key.hex)
        }
        settings.keyLogFile = tls.keyLogFile
        if !tls.pins.isEmpty { settings.pinning = try TLSPinning(pins: tls.pins) }
        if tls.isInsecure {
            settings.pinning.allowsInvalidCertificates = true
            settings.pinning.validatesDomainName = false
        }
        return settings
    }
}

extension MQTTClientConfiguration {
    /// A client beside the load, with the transport and the credentials of one of its clients.
    ///
    /// `nil` with SCRAM, a raw CONNECT or an Alibaba Cloud account: only the load itself can build such clients.
    init?(beside load: MQTTLoad, _ options: LoadOptions, client: Int, to target: Target?, layers: RunLayers?) {
        guard load.scram == nil, load.raw == nil, load.account == nil, let target else { return nil }
        self.init(host: target.host, port: UInt16(target.port))
        self.version = load.version
        self.transport = MQTTTransport(defaultPort: 1_883, key: nil) { layers?.make(on: $0) ?? [] }
        self.timeouts.connect = .nanoseconds(options.connectTimeout)
        var random = SplitMix64(seed: load.seed)
        let fields = load.credentials(of: load.values(of: client), random: &random)
        if fields.userName != nil || fields.password != nil {
            self.credentials = .password(user: fields.userName, fields.password)
        }
    }
}

extension XMPPClientConfiguration {
    /// A client beside the load, with the account of its first client.
    ///
    /// `nil` for a load that registers accounts, and with settings that only the load itself has.
    init?(beside load: XMPPLoad, _ options: XMPPOptions, to target: Target?) {
        let transport = options.common.transport
        guard options.kind != .register, transport.proxy == nil, transport.tls?.psk == nil,
            transport.tls?.pins.isEmpty ?? true, load.clients > 0
        else { return nil }
        let account = load.account(0)
        self.init(jid: "\(account.jid)", password: account.password)
        self.host = target?.host
        self.port = target.map { UInt16($0.port) }
        self.encryption = Encryption(rawValue: options.tls.rawValue) ?? .required
        self.webSocketPath = transport.webSocket?.path
        self.verifies = !(transport.tls?.isInsecure ?? false)
        self.authorityFile = transport.tls?.caFile
        self.certificateFile = transport.tls?.certificateFile
        self.keyFile = transport.tls?.keyFile
        self.mechanisms = options.mechanism.map { [$0] }
        self.allowsPlainWithoutTLS = load.allowsPlainWithoutTLS
        self.connectTimeout = .nanoseconds(options.common.connectTimeout)
    }
}

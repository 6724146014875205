import DataEncodings
import LoopContext
import Transport
import Workloads

/// The layers between TCP and the protocol, checked before the first socket is opened; shared by all event loops.
struct RunLayers: Sendable {
    struct Problem: Error, CustomStringConvertible {
        let description: String
    }

    let proxy: ProxyProtocol?
    let tls: TLSContext?
    let webSocket: WebSocketSettings?
    /// TLS starts later, when both sides have agreed to it (STARTTLS).
    private let defersTLS: Bool

    /// - Parameters:
    ///   - options: the options of the command line.
    ///   - authority: PEM file of the embedded broker's certificate, created for this run.
    ///   - xmpp: settings for XMPP clients with TLS.
    /// - Throws: an error in the files or in the combination of settings.
    init(
        _ options: LoadOptions,
        trusting authority: String? = nil,
        xmpp: XMPPLoad.TLSPolicy? = nil
    ) throws(Problem) {
        let tlsFlag = xmpp == nil ? "-S" : "--tls"
        self.defersTLS = xmpp.map { $0 != .direct } ?? false
        self.proxy = options.transport.proxy
        do throws(TLSSettingsError) {
            self.tls = try options.tlsSettings(trusting: authority).map { settings throws(TLSSettingsError) in
                try TLSContext(settings)
            }
        } catch {
            let flag = options.transport.tls.map { Self.flag(of: error, $0) ?? tlsFlag } ?? tlsFlag
            throw Problem(description: "\(flag): \(Self.words(error, of: flag))")
        }
        do throws(WebSocketSettings.Problem) {
            self.webSocket = try options.transport.webSocket.map { options throws(WebSocketSettings.Problem) in
                let headers = options.headers.map { ($0.name, $0.value) }
                return xmpp == nil
                    ? try WebSocketSettings(path: options.path, headers: headers)
                    : try WebSocketSettings.xmpp(path: options.path, headers: headers)
            }
        } catch {
            throw Problem(description: "--ws: \(error)")
        }
    }

    /// The error with its remedy.
    private static func words(_ error: TLSSettingsError, of flag: String) -> String {
        guard case .unreadable(let path, let reason) = error else { return "\(error)" }
        if flag == "--pin", !path.contains("/"), !path.contains(".") {
            return "'\(path)' is no pin; write sha256/BASE64, or the path of a file with the server's certificate"
        }
        return "cannot read \(path) (\(reason.prefix(1).lowercased() + reason.dropFirst())); "
            + "check the path and its permissions"
    }

    /// The flag that an error is about.
    private static func flag(of error: TLSSettingsError, _ tls: TransportOptions.TLS) -> String? {
        switch error {
        case .unreadable(let path, _), .malformed(let path, _), .isDER(let path), .isPEM(let path):
            let paths = [("--cacertfile", tls.caFile), ("--certfile", tls.certificateFile), ("--keyfile", tls.keyFile)]
            // The path of a client's own certificate has a number in place of the flag's %i.
            let flag = paths.first { _, given in
                given.map { $0 == path || $0.contains("%i") && path.hasPrefix($0.prefix { $0 != "%" }) } ?? false
            }
            return flag?.0 ?? (tls.pins.contains(path) ? "--pin" : nil)
        case .certificateWithoutKey: return "--certfile"
        case .keyWithoutCertificate, .keyMismatch, .numberInOnePathOnly: return "--keyfile"
        case .pskKey, .pskIdentity, .pskWithCertificates: return "--psk"
        case .versions, .version: return "--tls-version"
        case .cipher: return "--ciphers"
        case .applicationProtocol: return "--alpn"
        case .serverName: return "--sni"
        case .pin, .noPins: return "--pin"
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

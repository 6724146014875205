import Measurement
import MQTT
import Transport
import Workloads
import XMPP

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

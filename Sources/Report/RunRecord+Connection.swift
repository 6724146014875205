package import Measurement

// A run that never had a connection.
extension RunRecord {
    /// Whether the run ended, or was interrupted, before its first connection.
    package var hasNeverConnected: Bool {
        let codes = (self.verdict?.reasons ?? []).map(\.code)
        let isInterrupted = codes.contains("interrupted") && self.stages.first?.name == "connect"
        guard codes.contains("no-connection") || isInterrupted else { return false }
        return !self.metrics.contains {
            $0.isOf(.connect) && $0.labels["phase"] == "total" && $0.duration?.answered ?? 0 > 0
        }
    }

    /// The remedy for a run without any connection, by its most frequent error.
    package var connectionHint: String {
        let error = self.errors.max { $0.count < $1.count }
        let example = error?.example ?? ""
        switch error?.kind {
        case nil: return "no connect attempt ended; check that the server answers at this host and port"
        case "refused": return "check that the server listens at this host and port"
        case "resolve": return "check the spelling of the host name, and the name server of this host"
        case let kind? where kind.hasPrefix("timeout") || kind == "unreachable":
            return "check host and port, and the firewall and routes on the way to the server"
        case "protocol" where example.contains("HTTP"):
            return "this port speaks HTTP; \(self.named("add --ws", "use ws://")), or name the port of MQTT"
        case "reset", "lost", "closed", "protocol", "not-well-formed": return self.portHint
        case "tls": return self.tlsHint(example)
        case "websocket":
            let words = "check that this port speaks WebSocket, and the path of its endpoint"
            return self.has("tls") || self.has("domain") ? words : "\(words); TLS needs \(self.named("-S", "wss://"))"
        case "connack 0x01", "connack 0x84": return "the server does not speak this version of MQTT; try MQTT 3.1.1"
        case "connack 0x9c", "connack 0x9d", "see-other-host":
            return "the server has sent its clients elsewhere; connect there"
        case "connack 0x97", "connack 0x9f":
            return "a limit of the server; raise it, or connect more slowly (\(self.named("-R", "connect.rate")))"
        case "session":
            let clean = self.named("-C true", "connect.clean: true")
            return "use another \(self.named("--seed or --prefix", "seed or prefix")), or a clean start (\(clean))"
        case "ports", "descriptors", "source": return "check with clamor doctor what this host allows"
        case "not-authorized" where self.plans.contains { $0["domain"] != nil }:
            return "check \(self.named("--jid and its password; --register", "jid and its password; register: true")) "
                + "creates missing accounts"
        default: return "check user name, password and client identifiers; the server's log has its reason"
        }
    }

    /// The connection broke before the protocol began: most likely the port is one of other layers.
    private var portHint: String {
        if self.has("tls") { return self.plainPortHint }
        if self.has("websocket_path") {
            return "this port may need TLS, or speak no WebSocket; "
                + self.named("add -S, leave out --ws, or name its port", "use wss:// or mqtt://, or name its port")
        }
        return "check that this port speaks this protocol, and whether it requires TLS"
    }

    private var plainPortHint: String {
        if self.has("websocket_path") {
            return "this port may not speak WebSocket over TLS; leave out TLS, or name its port"
        }
        guard self.has("domain") else {
            let remedy = self.named("leave out -S", "use mqtt://")
            return "this port may not speak TLS; \(remedy), or use the port for TLS, 8883"
        }
        let tls = self.named("--tls", "tls:")
        return self.plans.contains { $0["tls_policy"] == "direct" }
            ? "this port may not begin with TLS; use \(tls) required, or the port for TLS, 5223"
            : "check that this is the port for clients of XMPP, 5222; with \(tls) direct it is 5223"
    }

    /// `example`: the words of the failure.
    private func tlsHint(_ example: String) -> String {
        if example.contains("closed during the handshake") || example.contains("does not speak TLS") {
            return self.plainPortHint
        }
        if example.contains("no known authority") {
            return "trust the authority of the server's certificate with \(self.named("--cacertfile", "ca_file:")) FILE"
        }
        if example.contains("certificate not for") {
            return self.plans.contains { $0["domain"] != nil }
                ? "the server needs a certificate for the domain of \(self.named("--jid", "jid"))"
                : "connect to a name of the certificate, or give such a name with \(self.named("--sni", "sni:")) NAME"
        }
        return "check that this port speaks TLS, and that the certificate is valid for this host"
    }

    /// An option, or what a scenario file has in its place.
    private func named(_ option: String, _ inFile: String) -> String { self.plan["command"] == "run" ? inFile : option }
    private func has(_ key: String) -> Bool { self.plans.contains { $0[key] != nil } }
}

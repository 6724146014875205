package import Measurement

// A run that never had a connection.
extension Summary {
    /// Every figure of such a run is zero and shows nothing of the server.
    var nothingConnected: Bool { self.record.hasNeverConnected }

    /// Where to look first.
    var hint: [String] { [self.style.paint("Hint", .bold) + "  " + self.record.connectionHint] }
}

extension RunRecord {
    /// Whether the run ended, or was interrupted, before its first connection.
    package var hasNeverConnected: Bool {
        let codes = (self.verdict?.reasons ?? []).map(\.code)
        let isInterrupted = codes.contains("interrupted") && self.stages.first?.name == "connect"
        guard codes.contains("no-connection") || isInterrupted else { return false }
        return !self.metrics.contains {
            $0.name == "connect_duration" && $0.labels["phase"] == "total" && $0.duration?.answered ?? 0 > 0
        }
    }

    /// The remedy for a run without any connection, by its most frequent error.
    package var connectionHint: String {
        let error = self.errors.max { $0.count < $1.count }
        switch error?.kind {
        case nil: return "no connect attempt ended; check that the server answers at this host and port"
        case "refused": return "check that the server listens at this host and port"
        case "resolve": return "check the spelling of the host name, and the name server of this host"
        case "timeout", "unreachable":
            return "check host and port, and the firewall and routes on the way to the server"
        case "reset", "lost", "closed", "protocol": return self.portHint
        case "tls": return self.tlsHint(error?.example ?? "")
        case "websocket": return "check that this port speaks WebSocket, and the path of its endpoint"
        case "connack 0x01", "connack 0x84": return "the server does not speak this version of MQTT; try MQTT 3.1.1"
        case "connack 0x9c", "connack 0x9d": return "the server has sent its clients elsewhere; connect there"
        case "connack 0x97", "connack 0x9f": return "a limit of the server; raise it, or connect more slowly (-R)"
        case "session":
            return "use another --seed or --prefix, or a clean start (-C true)"
        case "ports", "descriptors", "source": return "check with clamor doctor what this host allows"
        case "not-authorized" where self.plans.contains { $0["domain"] != nil }:
            return "check --jid and its password; --register creates missing accounts"
        default: return "check user name, password and client identifiers; the server's log has its reason"
        }
    }

    /// The connection broke before the protocol began: most likely the port is one of other layers.
    private var portHint: String {
        if self.has("tls") { return self.plainPortHint }
        if self.has("websocket_path") {
            return "this port may need TLS, or speak no WebSocket; add -S, leave out --ws, or name its port"
        }
        return "check that this port speaks this protocol, and whether it requires TLS"
    }

    private var plainPortHint: String {
        if self.has("websocket_path") {
            return "this port may not speak WebSocket over TLS; leave out TLS, or name its port"
        }
        guard self.has("domain") else {
            return "this port may not speak TLS; leave out -S, or use the port for TLS, 8883"
        }
        return self.plans.contains { $0["tls_policy"] == "direct" }
            ? "this port may not begin with TLS; use --tls required, or the port for TLS, 5223"
            : "check that this is the port for clients of XMPP, 5222; with --tls direct it is 5223"
    }

    /// `example`: the words of the failure.
    private func tlsHint(_ example: String) -> String {
        if example.contains("closed during the handshake") || example.contains("does not speak TLS") {
            return self.plainPortHint
        }
        if example.contains("no known authority") {
            return "trust the authority of the server's certificate with --cacertfile FILE"
        }
        if example.contains("certificate not for") {
            return self.plans.contains { $0["domain"] != nil }
                ? "the server needs a certificate for the domain of --jid"
                : "connect to a name of the certificate, or give such a name with --sni NAME"
        }
        return "check that this port speaks TLS, and that the certificate is valid for this host"
    }

    private func has(_ key: String) -> Bool { self.plans.contains { $0[key] != nil } }
}

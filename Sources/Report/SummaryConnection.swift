import Measurement

// A run that never had a connection.
extension Summary {
    /// Every figure of such a run is zero and shows nothing of the server.
    var nothingConnected: Bool {
        let codes = (self.record.verdict?.reasons ?? []).map(\.code)
        let isInterrupted = codes.contains("interrupted") && self.record.stages.first?.name == "connect"
        guard codes.contains("no-connection") || isInterrupted else { return false }
        return !self.record.metrics.contains { $0.name == "connect_duration" && $0.labels["phase"] == "total" }
    }

    /// Where to look first.
    var hint: [String] {
        let error = self.record.errors.max { $0.count < $1.count }
        return [self.style.paint("Hint", .bold) + "  " + Self.remedy(error?.kind)]
    }

    /// By the kind of the most frequent error.
    private static func remedy(_ kind: String?) -> String {
        switch kind {
        case nil: "no connect attempt ended; check that the server answers at this host and port"
        case "refused": "check that the server listens at this host and port"
        case "resolve": "check the spelling of the host name, and the name server of this host"
        case "timeout", "unreachable": "check host and port, and the firewall and routes on the way to the server"
        case "reset", "lost", "closed", "protocol":
            "check that this port speaks this protocol, and whether it requires TLS"
        case "tls": "check that this port speaks TLS, and that the certificate is valid for this host"
        case "websocket": "check that this port speaks WebSocket, and the path of its endpoint"
        case "connack 0x01", "connack 0x84": "the server does not speak this version of MQTT; try MQTT 3.1.1"
        case "session":
            "use another --seed or --prefix, a clean start (-C true), or MQTT 5, whose sessions end with their run"
        case "ports", "descriptors", "source": "check with clamor doctor what this host allows"
        default: "check user name, password and client identifiers; the server's log has its reason"
        }
    }
}

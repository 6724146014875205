import NIOHTTP1

/// The kind of the answer to a request head, decided without IO.
enum LiveAnswer {
    case response(LiveRequest, @Sendable (LiveRequest) async -> LiveResponse)
    case events(LiveRequest)
    case refusal(status: Int, allow: String? = nil, isLast: Bool = false)

    /// - Parameters:
    ///   - head: the request.
    ///   - routes: by path.
    ///   - hosts: the names of this server.
    ///   - limits: of the target.
    init(to head: HTTPRequestHead, routes: [String: LiveRoute], hosts: LiveHosts, limits: LiveLimits) {
        guard head.uri.utf8.count <= limits.targetBytes else {
            self = .refusal(status: 414, isLast: true)
            return
        }
        // A body would have to be read to find the next request. No route wants one.
        let lengths = head.headers["content-length"]
        guard head.headers["transfer-encoding"].isEmpty, lengths.allSatisfy({ $0.allSatisfy { $0 == "0" } }) else {
            self = .refusal(status: 413, isLast: true)
            return
        }
        guard let (host, target) = Self.target(of: head) else {
            self = .refusal(status: 400, isLast: true)
            return
        }
        // Only HTTP/1.0 has requests without a host (RFC 9112 §3.2).
        guard host.map(hosts.allows) ?? true else {
            self = .refusal(status: 421)
            return
        }
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        let accept = head.headers["accept"]
        let request = LiveRequest(
            path: parts.first.map(String.init) ?? "",
            accept: accept.isEmpty ? nil : accept.joined(separator: ",")
        )
        guard let route = routes[request.path] else {
            self = .refusal(status: 404)
            return
        }
        guard head.method == .GET || head.method == .HEAD else {
            self = .refusal(status: 405, allow: "GET, HEAD", isLast: head.method == .CONNECT)
            return
        }
        switch route {
        case .response(let make): self = .response(request, make)
        case .events: self = .events(request)
        }
    }

    /// Host and target; nil if the request has no host and needs one, or has several.
    private static func target(of head: HTTPRequestHead) -> (host: String?, target: String)? {
        let hosts = head.headers["host"]
        guard hosts.count < 2, hosts.count == 1 || head.version == .http1_0 else { return nil }
        let scheme = "http://"
        guard head.uri.lowercased().hasPrefix(scheme) else { return (hosts.first, head.uri) }
        // The absolute form, whose host counts instead of the header's (RFC 9112 §3.2.2).
        let rest = head.uri.dropFirst(scheme.count)
        let host = rest.prefix { $0 != "/" && $0 != "?" }
        let path = rest.dropFirst(host.count)
        return (String(host), path.hasPrefix("/") ? String(path) : "/" + path)
    }
}

package import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The reason why a name has no address, in the resolver's words.
package struct LookupFailure: Error, Hashable, Sendable, CustomStringConvertible {
    package let text: String

    package var description: String { self.text }

    package init(_ text: String) { self.text = text }
}

/// Resolves a name to addresses with port 0, in the order to try them; may block.
package typealias NameLookup = @Sendable (_ host: String) -> Result<[SocketAddress], LookupFailure>

/// The callers that wait for one answer.
///
/// A reference type, so that adding a caller copies nothing: ten thousand callers may wait at once.
final class Waiting<Answer> {
    var completions: [(Answer) -> Void]

    init(_ first: @escaping (Answer) -> Void) { self.completions = [first] }
}

/// Resolves names for one event loop: off the loop, once for all waiting callers, with a short cache.
package final class NameResolver {
    /// Cache time of an answer.
    package static let timeToLive = TimeAmount.seconds(10)
    /// Cache time of a failure: a thousand clients cause one lookup, but a retry causes another.
    package static let failureTimeToLive = TimeAmount.seconds(1)

    package typealias Answer = Result<[SocketAddress], LookupFailure>

    private enum Entry {
        case pending(Waiting<Answer>)
        case known(Answer, until: NIODeadline)
    }

    private let eventLoop: any EventLoop
    private let lookup: NameLookup
    private var entries: [String: Entry] = [:]

    package init(eventLoop: any EventLoop, lookup: @escaping NameLookup = NameResolver.system) {
        self.eventLoop = eventLoop
        self.lookup = lookup
    }

    /// Resolves the addresses of `host`.
    ///
    /// - Parameters:
    ///   - host: a name.
    ///   - now: the current time.
    ///   - completion: called later, on the loop, if this returns `nil`; otherwise never.
    /// - Returns: the answer, if it is cached.
    package func resolve(_ host: String, now: NIODeadline, completion: @escaping (Answer) -> Void) -> Answer? {
        switch self.entries[host] {
        case .known(let answer, let until) where now < until:
            return answer
        case .pending(let waiting):
            waiting.completions.append(completion)
            return nil
        case .known, nil:
            self.entries[host] = .pending(Waiting(completion))
            self.ask(host)
            return nil
        }
    }

    private func ask(_ host: String) {
        let lookup = self.lookup
        NIOSingletons.posixBlockingThreadPool.runIfActive(eventLoop: self.eventLoop) { lookup(host) }
            .assumeIsolated()
            .whenComplete { result in
                switch result {
                case .success(let answer): self.finish(host, answer)
                case .failure(let error): self.finish(host, .failure(LookupFailure(SystemError.words(error))))
                }
            }
    }

    private func finish(_ host: String, _ answer: Answer) {
        guard case .pending(let waiting) = self.entries[host] else { return }
        let keep =
            switch answer {
            case .success: Self.timeToLive
            case .failure: Self.failureTimeToLive
            }
        self.entries[host] = .known(answer, until: self.eventLoop.now + keep)
        for completion in waiting.completions { completion(answer) }
    }

    /// getaddrinfo(3).
    package static let system: NameLookup = { host in
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        // The constant is an enum on Linux and a number on Darwin.
        #if canImport(Glibc)
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
        hints.ai_socktype = SOCK_STREAM
        #endif
        hints.ai_flags = AI_ADDRCONFIG
        var first: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(host, nil, &hints, &first)
        guard code == 0 else { return .failure(LookupFailure(String(cString: gai_strerror(code)))) }
        defer { freeaddrinfo(first) }

        var addresses: [SocketAddress] = []
        var next = first
        while let info = next {
            let raw = UnsafeRawPointer(info.pointee.ai_addr)
            switch (info.pointee.ai_family, raw) {
            case (AF_INET, let raw?): addresses.append(SocketAddress(raw.loadUnaligned(as: sockaddr_in.self)))
            case (AF_INET6, let raw?): addresses.append(SocketAddress(raw.loadUnaligned(as: sockaddr_in6.self)))
            default: break
            }
            next = info.pointee.ai_next
        }
        return addresses.isEmpty ? .failure(LookupFailure("no address")) : .success(addresses)
    }
}

package enum NameServers {
    /// The servers of `/etc/resolv.conf`, or this host if the file names none (resolv.conf(5)); reads a file.
    package static func system(_ path: String = "/etc/resolv.conf") -> [SocketAddress] {
        let text = (try? TLSFiles.load(path)).map { String(decoding: $0, as: UTF8.self) } ?? ""
        var servers: [SocketAddress] = []
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.split { $0 == " " || $0 == "\t" }
            guard words.count >= 2, words[0] == "nameserver" else { continue }
            if let server = try? SocketAddress(ipAddress: String(words[1]), port: 53) { servers.append(server) }
        }
        // At most three servers are used, as in the system's resolver (MAXNS).
        if !servers.isEmpty { return Array(servers.prefix(3)) }
        return (try? SocketAddress(ipAddress: "127.0.0.1", port: 53)).map { [$0] } ?? []
    }

    /// Parses `HOST:PORT`, `HOST` and `[IPv6]:PORT`; the host is an address, the default port is 53.
    ///
    /// - Returns: `nil` for any other text.
    package static func parse(_ text: String) -> SocketAddress? {
        if let whole = try? SocketAddress(ipAddress: text, port: 53) { return whole }
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]), port > 0 else {
            return text.hasPrefix("[") && text.hasSuffix("]") ? self.bracketed(text, 53) : nil
        }
        let host = String(text[..<colon])
        if host.hasPrefix("[") { return self.bracketed(host, Int(port)) }
        guard !host.contains(":") else { return nil }
        return try? SocketAddress(ipAddress: host, port: Int(port))
    }

    private static func bracketed(_ host: String, _ port: Int) -> SocketAddress? {
        guard host.hasPrefix("["), host.hasSuffix("]") else { return nil }
        return try? SocketAddress(ipAddress: String(host.dropFirst().dropLast()), port: port)
    }
}

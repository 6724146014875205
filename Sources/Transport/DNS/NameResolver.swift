package import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Why a name has no address: the resolver's words.
package struct LookupFailure: Error, Hashable, Sendable, CustomStringConvertible {
    package let text: String

    package var description: String { self.text }

    package init(_ text: String) { self.text = text }
}

/// Finds the addresses of a name, in the order to try them, with port 0; it may block.
package typealias NameLookup = @Sendable (_ host: String) -> Result<[SocketAddress], LookupFailure>

/// Those who wait for one answer.
///
/// A list of its own, and not a copy for each who comes: a storm of connects asks ten thousand times at once.
final class Waiting<Answer> {
    var completions: [(Answer) -> Void]

    init(_ first: @escaping (Answer) -> Void) { self.completions = [first] }
}

/// Looks names up for one event loop: off the loop, once for all who wait, and kept for a while.
package final class NameResolver {
    /// How long an answer is kept.
    package static let timeToLive = TimeAmount.seconds(10)
    /// How long a failure is: a thousand clients shall not ask a thousand times, yet a retry shall ask again.
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

    /// Asks for the addresses of `host`.
    ///
    /// - Parameters:
    ///   - host: a name.
    ///   - now: the time.
    ///   - completion: called later, on the loop, when nothing is returned; never otherwise.
    /// - Returns: the answer, if it is known already.
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
        // A Linux constant is an enum here, a Darwin one a number.
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

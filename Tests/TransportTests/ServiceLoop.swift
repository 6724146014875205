import LoopContext
import NIOCore
import NIOPosix
import TestSupport
import Transport

/// The result of a connect to a domain.
struct ServiceResult: Sendable {
    var target: Target?
    var isDirectTLS = false
    var phases = ConnectPhases()
    var error: ConnectError?
}

/// An event loop with a connector to one domain, driven from a test.
final class ServiceLoop: Sendable {
    private struct State {
        let context: LoopContext
        let connector: ServiceConnector
        let dns: DNSClient
    }

    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let state: NIOLoopBound<State>

    init(
        _ domain: String,
        servers: [SocketAddress],
        kinds: ServiceKinds = .both,
        tls: TLSSettings? = nil,
        usesDNS: Bool = true,
        racing: AddressRacing? = nil,
        seed: UInt64 = 1
    ) async throws {
        let loop = self.group.next()
        let tls = try tls.map { try TLSContext($0) }
        self.state = try await loop.submit {
            let context = LoopContext(eventLoop: loop)
            let dns = DNSClient(eventLoop: loop, servers: servers)
            let connector = ServiceConnector(
                context: context,
                domain: domain,
                kinds: kinds,
                dns: dns,
                layers: ServiceConnector.Layers(direct: tls.map { [TLSLayer($0, loop: context)] } ?? []),
                racing: racing,
                resolver: usesDNS ? dns : nil,
                generator: SeededGenerator(seed: seed)
            )
            return NIOLoopBound(State(context: context, connector: connector, dns: dns), eventLoop: loop)
        }.get()
    }

    func connect(within time: TimeAmount = .seconds(60)) async throws -> ServiceResult {
        let loop = self.group.next()
        let state = self.state
        return try await loop.flatSubmit {
            let promise = loop.makePromise(of: ServiceResult.self)
            state.value.connector.connect(client: 0, deadline: .now() + time, handler: { Idle() }) { result in
                switch result {
                case .success(let connected):
                    promise.succeed(
                        ServiceResult(
                            target: connected.target,
                            isDirectTLS: connected.isDirectTLS,
                            phases: connected.phases
                        )
                    )
                    connected.channel?.close(promise: nil)
                case .failure(let error):
                    promise.succeed(ServiceResult(target: error.target, phases: error.phases, error: error))
                }
            }
            return promise.futureResult
        }.get()
    }

    func questions() async throws -> Int {
        let state = self.state
        return try await self.group.next().submit { state.value.dns.questions }.get()
    }

    /// Begins a connect, and gives it up in the same turn.
    func cancelled() async throws -> ConnectError.Reason? {
        let loop = self.group.next()
        let state = self.state
        return try await loop.flatSubmit {
            let promise = loop.makePromise(of: ConnectError.Reason?.self)
            state.value.connector.connect(client: 0, deadline: .now() + .seconds(60), handler: { Idle() }) { result in
                if case .failure(let error) = result { promise.succeed(error.reason) } else { promise.succeed(nil) }
            }
            state.value.connector.cancelAll()
            return promise.futureResult
        }.get()
    }

    /// Begins some connects in one turn; the first that fails has its way with the connector.
    func connectTogether(
        _ count: Int,
        first act: @escaping @Sendable (ServiceConnector) -> Void
    ) async throws -> [ConnectError.Reason?] {
        let loop = self.group.next()
        let state = self.state
        return try await loop.flatSubmit {
            let reasons = NIOLoopBoundBox<[ConnectError.Reason?]>([], eventLoop: loop)
            let promise = loop.makePromise(of: [ConnectError.Reason?].self)
            for _ in 0..<count {
                let deadline = NIODeadline.now() + .seconds(60)
                state.value.connector.connect(client: 0, deadline: deadline, handler: { Idle() }) { result in
                    if case .failure(let error) = result {
                        reasons.value.append(error.reason)
                    } else {
                        reasons.value.append(nil)
                    }
                    if reasons.value.count == 1 { act(state.value.connector) }
                    if reasons.value.count == count { promise.succeed(reasons.value) }
                }
            }
            return promise.futureResult
        }.get()
    }

    func shutdown() async throws {
        let state = self.state
        try await self.group.next().submit {
            state.value.connector.retire()
            state.value.context.timers.stop()
        }.get()
        try await self.group.shutdownGracefully()
    }
}

private final class Idle: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
}

/// Runs `body` with a connector to a domain, and shuts it down after.
func withServiceLoop<Answer>(
    _ domain: String,
    servers: [SocketAddress],
    kinds: ServiceKinds = .both,
    tls: TLSSettings? = nil,
    usesDNS: Bool = true,
    racing: AddressRacing? = nil,
    seed: UInt64 = 1,
    _ body: (ServiceLoop) async throws -> Answer
) async throws -> Answer {
    let loop = try await ServiceLoop(
        domain,
        servers: servers,
        kinds: kinds,
        tls: tls,
        usesDNS: usesDNS,
        racing: racing,
        seed: seed
    )
    do {
        let answer = try await body(loop)
        try await loop.shutdown()
        return answer
    } catch {
        try? await loop.shutdown()
        throw error
    }
}

import EmbeddedBroker
import FaultLines
import NIOCore
import NIOPosix
import Testing
import TestSupport

@Suite("Errors of the broker in words")
struct ErrorWordsTests {
    private static let listeners = BrokerListener.Transport.allCases.map { BrokerListener($0, port: 1_883) }
    private static let errors: [BrokerStartError] = listeners.flatMap { listener in
        [
            .noTLS(listener), .cannotListen(listener, host: "127.0.0.1", NIOThreadPoolError.ThreadPoolInactive()),
            .cannotListen(listener, host: "127.0.0.1", IOError(errnoCode: 98, reason: "bind(descriptor:ptr:bytes:)")),
        ]
    }

    /// Does not compile with a case that the list above lacks.
    private static func isListed(_ error: BrokerStartError) -> Bool {
        switch error {
        case .cannotListen, .noTLS: true
        }
    }

    @Test("every case is words for people", arguments: errors)
    func words(_ error: BrokerStartError) {
        #expect(Self.isListed(error))
        #expect(Wording.swift(in: "\(error)") == nil, "\(error)")
    }

    @Test("a fault that is refused is explained in words", arguments: FaultPlan.names)
    func faults(_ name: String) {
        let error = #expect(throws: FaultLineError.self) { try FaultPlan.parse(line: "\(name) x") }
        #expect(Wording.swift(in: error.map { "\($0)" } ?? "") == nil, "\(error as Any)")
    }

    @Test("a taken port is the system's words, without the name of a function")
    func portTaken() async throws {
        let port = try ReservedPort()
        let error = await #expect(throws: BrokerStartError.self) {
            _ = try await BrokerServer.start(BrokerConfiguration(port: port.port))
        }
        #expect(error?.description == "cannot listen on 127.0.0.1:\(port.port): Address already in use (errno 98)")
    }
}

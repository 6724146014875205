import Synchronization
import Testing
import XMPP

@Suite("Sending to a server that does not read", .timeLimit(.minutes(10)))
struct BackPressureTests {
    private static func message(_ text: String) -> XMPPElement {
        XMPPElement(
            "message",
            namespace: XMPPNamespace.client,
            attributes: ["to": "romeo@localhost"],
            children: [.element(XMPPElement("body", namespace: XMPPNamespace.client, text: text))]
        )
    }

    @Test("[C2] a server that does not read makes those who send wait, and memory stays as it is")
    func backPressure() async throws {
        try await FakeServer.with(features: "") { _, _ in
            nil
        } _: { server in
            var configuration = server.configuration
            configuration.resumes = false
            let client = XMPPClient(configuration)
            try await client.connect()
            try await server.setReading(false)
            let text = String(repeating: "x", count: 100_000)
            let sent = Atomic(0)
            let hasEnded = Atomic(false)
            let sender = Task { () -> XMPPClientError in
                while true {
                    do throws(XMPPClientError) {
                        try await client.send(Self.message(text))
                    } catch {
                        hasEnded.store(true, ordering: .relaxed)
                        return error
                    }
                    sent.add(1, ordering: .relaxed)
                }
            }
            // Both sockets' buffers and one message; a client without back-pressure sends without end.
            let most = 400
            // Waiting for good: the client's loop has had a hundred turns, and nothing more has gone.
            var turns = (count: 0, sent: -1)
            while turns.count < 100, turns.sent < most, !hasEnded.load(ordering: .relaxed), !Task.isCancelled {
                let isWaiting = await client.countWaitingSends() == 1
                let now = sent.load(ordering: .relaxed)
                turns = isWaiting && now == turns.sent ? (turns.count + 1, now) : (0, now)
            }
            sender.cancel()
            #expect(await sender.value == .cancelled)
            let count = sent.load(ordering: .relaxed)
            #expect(count < most, "\(count) messages of 100,000 bytes")
            // Unsent messages are withdrawn, and the client continues.
            try await server.setReading(true)
            try await client.send(Self.message("on"))
            try await server.until("message", count: count + 1)
            await client.disconnect()
        }
    }
}

import MQTTCodec
import NIOCore
import NIOPosix
import Scenario
import Testing
import Workloads
import clamor

@Suite("A lane of a decode", .timeLimit(.minutes(10)))
struct DecodeLaneTests {
    static let streams = [
        DecodeStream(
            DecodeStreamPlan(version: .v5, topic: Template(parsing: "t/%i"), sizes: [64], qualities: [.atMostOnce]),
            atLeast: 20_000
        ),
        DecodeStream(XMPPStreamPlan(sizes: [44]), atLeast: 20_000),
    ]

    private func measure(_ stream: DecodeStream, _ path: DecodePath) async throws {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        var options = DecodeOptions()
        options.duration = 50_000_000
        let run = DecodeLaneRun(
            lane: DecodeLane(.segments, path),
            options: options,
            seed: 1,
            loop: group.next(),
            stop: StopFlag()
        )
        let result: Result<Void, any Error>
        do {
            result = .success(try await run.perform(DecodeStreams(memory: stream, socket: stream)) { _ in true })
        } catch {
            result = .failure(error)
        }
        try await group.shutdownGracefully()
        try result.get()
    }

    @Test(
        "what is decoded is compared with what was written, over a socket too",
        arguments: streams,
        DecodePath.allCases
    )
    func compares(_ stream: DecodeStream, _ path: DecodePath) async throws {
        try await self.measure(stream, path)
        var sum = stream.checksum
        sum.identifiers += 1
        do {
            try await self.measure(stream.claiming(sum), path)
            Issue.record("not found out")
        } catch {
            guard case .mismatch(let subject, let encoded, let decoded)? = error as? DecodeFault else {
                Issue.record("\(error)")
                return
            }
            #expect(subject == stream.subject)
            #expect(encoded.packets == decoded.packets)
            #expect(encoded.identifiers > decoded.identifiers)
        }
    }
}

import Dispatch
import LoopContext
import NIOCore
import Synchronization
import TestSupport
import Testing
import Transport

#if canImport(Glibc)
import Glibc
#endif

@Suite("A loop of sockets without channels", .enabled(if: SocketLoop.isAvailable), .timeLimit(.minutes(5)))
struct SocketLoopTests {
    private static func with(_ body: (SocketLoop) async throws -> Void) async throws {
        let loop = try #require(SocketLoop())
        do {
            try await body(loop)
        } catch {
            try? await loop.shutdownGracefully()
            throw error
        }
        try await loop.shutdownGracefully()
    }

    /// Numbers in the order in which threads put them down.
    private final class Log: Sendable {
        private let numbers = Mutex<[Int]>([])

        func add(_ number: Int) { self.numbers.withLock { $0.append(number) } }
        var all: [Int] { self.numbers.withLock { $0 } }
    }

    // MARK: The event loop

    @Test("tasks of other threads run once each, in each thread's order, on the loop")
    func tasks() async throws {
        try await Self.with { loop in
            let ran = Log()
            await withTaskGroup(of: Void.self) { group in
                for thread in 0..<8 {
                    group.addTask {
                        for number in 0..<1_000 {
                            loop.execute {
                                loop.preconditionInEventLoop()
                                ran.add(thread * 1_000 + number)
                            }
                        }
                    }
                }
            }
            try await loop.submit {}.get()
            let all = ran.all
            #expect(all.sorted() == Array(0..<8_000))
            for thread in 0..<8 {
                let own = all.filter { $0 / 1_000 == thread }
                #expect(own == own.sorted())
            }
        }
    }

    @Test("a task that a task adds runs in the same turn, and does not keep the timers from theirs")
    func endlessTasks() async throws {
        try await Self.with { loop in
            let stops = Log()
            @Sendable func again() { if stops.all.isEmpty { loop.execute { again() } } }
            loop.execute { again() }
            try await loop.scheduleTask(in: .milliseconds(5)) { stops.add(1) }.futureResult.get()
        }
    }

    @Test("scheduled tasks run in the order of their times; a cancelled one never does; an error is its result")
    func scheduled() async throws {
        struct Failure: Error {}
        try await Self.with { loop in
            let ran = Log()
            let begin = NIODeadline.now()
            let tasks = [3, 1, 2].map { number in
                loop.scheduleTask(deadline: begin + .milliseconds(Int64(20 * number))) {
                    ran.add(number)
                    return NIODeadline.now()
                }
            }
            let cancelled = loop.scheduleTask(in: .milliseconds(1)) { ran.add(9) }
            cancelled.cancel()
            let failing = loop.scheduleTask(in: .milliseconds(1)) { throw Failure() }
            await #expect(throws: Failure.self) { try await failing.futureResult.get() }
            await #expect(throws: EventLoopError.self) { try await cancelled.futureResult.get() }
            let last = try await tasks[0].futureResult.get()
            #expect(last >= begin + .milliseconds(60))
            #expect(ran.all == [1, 2, 3])
        }
    }

    @Test("a loop that ends runs the tasks that it has, and gives up the scheduled ones")
    func ends() async throws {
        let loop = try #require(SocketLoop())
        let ran = Log()
        let late = loop.scheduleTask(in: .hours(1)) {}
        late.futureResult.whenFailure { _ in ran.add(2) }
        loop.execute { ran.add(1) }
        try await loop.shutdownGracefully()
        #expect(ran.all == [1, 2])
        // Behind the end nothing runs, and nothing waits for it.
        loop.execute { ran.add(3) }
        #expect(!loop.inEventLoop)
        try await loop.shutdownGracefully()
        #expect(ran.all == [1, 2])
    }

    @Test("timers of an adopted context fire in order, not early, and as often as they are set")
    func timers() async throws {
        try await Self.with { loop in
            let fired = try await loop.flatSubmit {
                let promise = loop.makePromise(of: [(tag: Int32, late: TimeAmount)].self)
                let context = LoopContext(eventLoop: loop)
                loop.adopt(context)
                let begin = context.refresh()
                var fired: [(tag: Int32, late: TimeAmount)] = []
                var timers: [TimerID] = []
                let owner = context.timers.addOwner { _, tag in
                    fired.append((tag, context.now - (begin + .milliseconds(Int64(tag)))))
                    if fired.count == 50 { promise.succeed(fired) }
                }
                for tag in (1...50 as ClosedRange<Int32>).reversed() {
                    let timer = context.timers.register(owner, tag: tag)
                    timers.append(timer)
                    context.timers.schedule(timer, at: begin + .milliseconds(Int64(tag)))
                }
                return promise.futureResult
            }.get()
            #expect(fired.map(\.tag) == Array(1...50))
            #expect(fired.allSatisfy { $0.late >= .zero })
        }
    }

    // MARK: Sockets

    /// A user that records what its wire tells, and writes on request.
    private final class Talker: WireUser {
        let wire: Wire
        var bytes: [UInt8] = []
        var reads: [Int] = []
        var taken = 0
        var writable = 0
        var end: WireEnd?
        var done: (Talker) -> Bool = { _ in false }
        var promise: EventLoopPromise<Void>?

        init(_ context: LoopContext) { self.wire = Wire(context) }

        func received(_ bytes: UnsafeRawBufferPointer) {
            self.bytes += bytes
            self.reads.append(bytes.count)
            self.look()
        }
        func flush() -> Int { self.wire.flush() }
        func took(_ bytes: Int) { self.taken += bytes }
        func becameWritable() {
            self.writable += 1
            self.look()
        }
        func ended(_ end: WireEnd) {
            self.end = end
            self.wire.close()
            self.look()
        }

        func look() {
            guard self.done(self), let promise = self.promise.take() else { return }
            promise.succeed(())
        }

        func say(_ bytes: [UInt8]) -> Int {
            self.wire.out.pointee.writeBytes(bytes)
            return self.wire.flush()
        }
    }

    /// A connection on a loop of its own to a peer with this script.
    private final class Rig: Sendable {
        let loop: SocketLoop
        let peer: ScriptedPeer
        let talker: NIOLoopBound<Talker>
        let connector: NIOLoopBound<TCPConnector>

        /// `held`: the loop waits for it between the begin of the connect and its first look at the socket.
        init(
            _ loop: SocketLoop,
            _ peer: ScriptedPeer,
            readSize: Int,
            host: String = "127.0.0.1",
            held: DispatchSemaphore? = nil
        ) async throws {
            self.loop = loop
            self.peer = peer
            (self.talker, self.connector) = try await loop.flatSubmit {
                let context = LoopContext(eventLoop: loop, readSize: readSize)
                loop.adopt(context)
                let connector = TCPConnector(context: context, targets: [Target(host: host, port: peer.port)])
                let talker = Talker(context)
                let promise = loop.makePromise(of: (NIOLoopBound<Talker>, NIOLoopBound<TCPConnector>).self)
                let made = (NIOLoopBound(talker, eventLoop: loop), NIOLoopBound(connector, eventLoop: loop))
                connector.connect(
                    client: 0,
                    deadline: loop.now + .seconds(60),
                    handler: { talker.makeHandler() },
                    done: { result in promise.completeWith(result.map { _ in made }.mapError { $0 as any Error }) }
                )
                held?.wait()
                return promise.futureResult
            }.get()
        }

        func run<Answer: Sendable>(_ body: @escaping @Sendable (Talker) throws -> Answer) async throws -> Answer {
            let talker = self.talker
            return try await self.loop.submit { try body(talker.value) }.get()
        }

        func until(_ condition: @escaping @Sendable (Talker) -> Bool) async throws {
            let (talker, loop) = (self.talker, self.loop)
            try await loop.flatSubmit {
                let promise = loop.makePromise(of: Void.self)
                talker.value.done = condition
                talker.value.promise = promise
                talker.value.look()
                return promise.futureResult
            }.get()
        }
    }

    private static func with(
        _ script: [ScriptedPeer.Step],
        readSize: Int = ReceiveBuffer.capacity,
        _ body: (Rig) async throws -> Void
    ) async throws {
        try await Self.with { loop in
            try await withScriptedPeer(script) { peer in
                let rig = try await Rig(loop, peer, readSize: readSize)
                try await body(rig)
                try await rig.run { $0.wire.close() }
            }
        }
    }

    @Test(
        "every byte that the peer sends comes, in order, whatever the size of a read",
        arguments: [1, 7, 4_096, 65_536]
    )
    func reads(_ readSize: Int) async throws {
        let sent = (0..<20_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
        try await Self.with([.send(sent), .close], readSize: readSize) { rig in
            try await rig.until { $0.end != nil }
            try await rig.run { talker in
                #expect(talker.bytes == sent)
                #expect(talker.reads.allSatisfy { $0 <= readSize })
                guard case .finished(hasAll: true) = talker.end else {
                    Issue.record("\(String(describing: talker.end))")
                    return
                }
            }
        }
    }

    @Test("bytes that the kernel does not take wait, and leave in order when it has room; the FIN follows them")
    func held() async throws {
        let much = (0..<(8 << 20)).map { UInt8(truncatingIfNeeded: $0 / 3) }
        try await Self.with([.stopReading]) { rig in
            try await rig.peer.untilScriptDone()
            let unsent = try await rig.run { talker in
                let unsent = talker.say(much)
                #expect(unsent > 0 && talker.wire.isBlocked && !talker.wire.isWritable)
                #expect(talker.taken == much.count - unsent && talker.wire.unsent == unsent)
                #expect(talker.say([1, 2, 3]) == unsent + 3)
                talker.wire.shutOutput()
                return unsent
            }
            #expect(unsent > 0)
            try await rig.peer.startReading()
            try await rig.until { $0.writable == 1 }
            try await rig.peer.untilBytes(much.count + 3)
            let (received, taken) = (try await rig.peer.received(), try await rig.run { $0.taken })
            #expect(received == much + [1, 2, 3])
            #expect(taken == much.count + 3)
        }
    }

    @Test("a reset is reported as such, whether a read or a write meets it", arguments: [false, true])
    func reset(_ writes: Bool) async throws {
        try await Self.with([.expectCount(1), .reset]) { rig in
            _ = try await rig.run { $0.say([1]) }
            if writes {
                // The loop does not look at its sockets meanwhile.
                try await onHeldLoop(rig.loop, meantime: { try await rig.peer.untilScriptDone() }) {
                    _ = rig.talker.value.say([2, 3])
                }
            }
            try await rig.until { $0.end != nil }
            let end = try await rig.run { String(describing: $0.end) }
            #expect(end.contains("failed(\(ECONNRESET))"))
        }
    }

    @Test("a wire that is closed hears nothing more, and its peer sees the end")
    func closed() async throws {
        try await Self.with { loop in
            try await withScriptedPeer([.send([1, 2, 3])]) { peer in
                for number in 0..<200 {
                    let rig = try await Rig(loop, peer, readSize: 65_536)
                    try await rig.run { talker in
                        talker.wire.close()
                        #expect(!talker.wire.isOpen && talker.say([9]) == 0)
                    }
                    try await peer.untilEnd(of: number)
                    let isSilent = try await rig.run { $0.end == nil && $0.writable == 0 }
                    #expect(isSilent)
                }
            }
        }
    }

    @Test("a loop that ends closes its connections, and their users are called")
    func endsWithConnections() async throws {
        let loop = try #require(SocketLoop())
        try await withScriptedPeer([]) { peer in
            let (rig, ended) = (try await Rig(loop, peer, readSize: 65_536), Log())
            try await rig.run { talker in
                talker.done = { _ in
                    ended.add(1); return false
                }
            }
            try await loop.shutdownGracefully()
            #expect(ended.all == [1])
            try await peer.untilEnd()
        }
    }

    /// An IPv4 address in IPv6 is no loopback for the connector: it waits for the event of the connect.
    @Test("bytes and a FIN that come before the connect is noticed are both reported")
    func earlyEnd() async throws {
        try await Self.with { loop in
            try await withScriptedPeer([.send([1, 2, 3]), .halfClose]) { peer in
                let held = DispatchSemaphore(value: 0)
                async let making = Rig(loop, peer, readSize: 65_536, host: "::ffff:127.0.0.1", held: held)
                do {
                    defer { held.signal() }
                    try await peer.untilScriptDone()
                }
                let rig = try await making
                try await rig.until { $0.end != nil }
                let (bytes, end) = try await rig.run { ($0.bytes, String(describing: $0.end)) }
                #expect(bytes == [1, 2, 3])
                #expect(end.contains("finished"))
            }
        }
    }

    @Test("bytes of a wire without a connection reach no other one")
    func stray() async throws {
        try await Self.with([]) { rig in
            try await rig.run { talker in
                let stray = Talker(talker.wire.loop)
                stray.wire.out.pointee.writeBytes([9, 9])
                #expect(talker.say([1]) == 0)
                #expect(stray.say([8]) == 0)
                #expect(talker.say([2]) == 0)
            }
            try await rig.peer.untilBytes(2)
            let received = try await rig.peer.received()
            #expect(received == [1, 2])
        }
    }

    @Test("a refused connect and one from a foreign address have their reasons")
    func refusals() async throws {
        try await Self.with { loop in
            func connect(_ port: Int, from source: String? = nil) async throws -> ConnectError? {
                let sources = try source.map { try SourceAddresses(given: [$0], targets: 1) } ?? .any
                return try await loop.flatSubmit {
                    let context = LoopContext(eventLoop: loop)
                    loop.adopt(context)
                    let connector = TCPConnector(
                        context: context,
                        targets: [Target(host: "127.0.0.1", port: port)],
                        sources: sources
                    )
                    let promise = loop.makePromise(of: ConnectError?.self)
                    connector.connect(
                        client: 0,
                        deadline: loop.now + .seconds(60),
                        handler: { Talker(context).makeHandler() },
                        done: { result in
                            withExtendedLifetime(connector) {
                                if case .failure(let error) = result {
                                    promise.succeed(error)
                                } else {
                                    promise.succeed(nil)
                                }
                            }
                        }
                    )
                    return promise.futureResult
                }.get()
            }
            let reserved = try ReservedPort()
            let refused = try await connect(reserved.port)
            #expect(refused?.reason == .refused)
            let foreign = try await connect(reserved.port, from: "203.0.113.7")
            #expect(foreign?.reason == .sourceAddress)
        }
    }
}

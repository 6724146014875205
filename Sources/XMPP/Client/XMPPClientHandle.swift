import LoopContext
import NIOCore
package import XMPPCodec

/// The Sendable side of a client's core: what the client and its modules share.
///
/// Modules may outlive the client; their calls fail then.
final class XMPPClientHandle: Sendable {
    let configuration: XMPPClientConfiguration
    let eventLoop: any EventLoop
    let inbox: XMPPInbox<XMPPElement>
    let broadcast = Broadcast<XMPPClientState>(initial: .created)
    let log: XMPPClientLog
    let modules: [any XMPPModule]
    private let place: NIOLoopBoundBox<Place>

    /// The core, on its loop.
    private enum Place {
        case unused
        case used(XMPPClientCore)
        case released
    }

    init(
        _ configuration: XMPPClientConfiguration,
        _ modules: [any XMPPModule],
        _ eventLoop: any EventLoop,
        _ log: XMPPClientLog
    ) {
        self.configuration = configuration
        self.modules = modules
        self.eventLoop = eventLoop
        self.log = log
        self.inbox = XMPPInbox(
            count: max(1, configuration.limits.inbox),
            bytes: max(1, configuration.limits.inboxBytes)
        )
        self.place = .makeBoxSendingValue(.unused, eventLoop: eventLoop)
        for module in modules { module.link.join(self) }
    }

    /// The namespaces that the client and its modules announce.
    var features: Set<String> { self.modules.reduce(into: [XMPPNamespace.ping]) { $0.formUnion($1.features) } }

    /// Takes a channel that a peer opened; on its loop, before it reads.
    func adopt(_ channel: any Channel) throws {
        guard let core = self.core() else { return }
        try core.adopt(channel)
    }

    func release() {
        self.eventLoop.execute {
            if case .used(let core) = self.place.value { core.letGo() }
            self.place.value = .released
            self.inbox.finish()
            self.broadcast.finish()
            for module in self.modules {
                module.clientReleased()
                module.link.leave()
            }
        }
    }

    /// The core, made by its first call; on the loop.
    private func core() -> XMPPClientCore? {
        switch self.place.value {
        case .used(let core): return core
        case .released: return nil
        case .unused:
            let core = XMPPClientCore(self)
            self.place.value = .used(core)
            return core
        }
    }

    /// Runs something on the loop, unless the client has gone by then.
    func post(_ body: @escaping @Sendable (XMPPClientCore) -> Void) {
        self.eventLoop.execute {
            guard let core = self.core() else { return }
            core.context.refresh()
            body(core)
        }
    }

    /// Starts something on the loop and waits for its end.
    func perform<Value: Sendable>(
        _ start: @escaping @Sendable (XMPPClientCore, XMPPClientWaiter<Value>) -> Void,
        cancelled: (@Sendable (XMPPClientCore, XMPPClientWaiter<Value>) -> Void)? = nil
    ) async throws(XMPPClientError) -> Value {
        let waiter = XMPPClientWaiter<Value>()
        let outcome = await withTaskCancellationHandler {
            await waiter.wait {
                self.eventLoop.execute {
                    // A cancellation may have come first.
                    guard !waiter.isDone else { return }
                    guard let core = self.core() else { return waiter.fail(.notConnected) }
                    core.context.refresh()
                    start(core, waiter)
                }
            }
        } onCancel: {
            guard let cancelled else { return waiter.fail(.cancelled) }
            // Requests in flight are cancelled before the task continues, because the task may send them again.
            self.eventLoop.execute {
                if case .used(let core) = self.place.value { cancelled(core, waiter) }
                waiter.fail(.cancelled)
            }
        }
        return try outcome.get()
    }

    func send(_ stanza: XMPPElement, until progress: XMPPSendProgress) async throws(XMPPClientError) {
        try await self.perform { core, waiter in
            core.send(stanza, until: progress, waiter)
        } cancelled: { core, waiter in
            core.withdraw(waiter)
        }
    }

    func request(_ iq: XMPPElement) async throws(XMPPClientError) -> XMPPElement {
        try await self.perform { core, waiter in core.request(iq, waiter) }
    }
}

/// Where elements wait between the event loop and the task that takes them: so many and so large at most, the newest.
final class XMPPInbox<Element: Sendable>: Sendable {
    private let queue = TakeQueue<Element, Void>(())
    private let count: Int
    private let bytes: Int

    init(count: Int, bytes: Int) {
        self.count = count
        self.bytes = bytes
    }

    func put(_ element: Element, size: Int) {
        self.queue.put(element, size: size) { waiting in
            // The newest stays, however large it is.
            while waiting.count > self.count || waiting.size > self.bytes && waiting.count > 1 { waiting.removeFirst() }
        }
    }

    /// Elements that wait can still be taken.
    func finish() { self.queue.finish() }

    /// The next element; `nil` when none comes any more, or the task is cancelled.
    func next() async -> Element? { await self.queue.next() }
}

extension XMPPElement {
    /// Bytes that it takes in memory, or so.
    package var estimatedSize: Int {
        var size = 96 + self.name.utf8.count
        for attribute in self.attributes { size += 64 + attribute.name.utf8.count + attribute.value.utf8.count }
        for child in self.children {
            switch child {
            case .element(let element): size += element.estimatedSize
            case .text(let text): size += 32 + text.utf8.count
            }
        }
        return size
    }
}

typealias XMPPClientWaiter<Value: Sendable> = CallWaiter<Value, XMPPClientError>

import NIOCore

/// Plans the reconnects of a client; the client's core connects.
final class ReconnectHandler: XMPPHandler {
    private var machine: ReconnectMachine
    private let random: () -> Double
    private let told: (XMPPReconnect.Event) -> Void

    init(_ machine: ReconnectMachine, random: @escaping () -> Double, told: @escaping (XMPPReconnect.Event) -> Void) {
        self.machine = machine
        self.random = random
        self.told = told
    }

    func ready(_ session: XMPPSession, in context: XMPPModuleContext) { self.machine.ready() }

    func reset() { self.machine.reset() }

    /// - Returns: when to connect again, and a host that the server named; `nil` for no reconnect.
    func plan(after end: XMPPClientEnd, _ retry: XMPPRetry, now: NIODeadline) -> (NIODeadline, XMPPHost?)? {
        switch self.machine.ended(retry, now: now, random: self.random()) {
        case .stay:
            self.told(.stays(end))
            return nil
        case .connect(let time, let host):
            self.told(.waits(.nanoseconds((time - now).nanoseconds), after: end))
            return (time, host)
        }
    }
}

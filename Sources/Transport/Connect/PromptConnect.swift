import CPosix
import LoopContext
import NIOCore
import NIOPosix

#if canImport(Glibc)
import Glibc
#endif

/// Connects to loopback, where a connect is over as soon as it has begun.
///
/// NIO waits for an event, with a task of the loop as its timer, and changes its registration with epoll four times;
/// of a socket that is connected it makes a channel with two. It takes over none that still connects, so other
/// addresses are left to it.
struct PromptConnect {
    /// How soon a connect is looked at again that is not over at once: the server's queue is full, or the network
    /// device delays.
    static let patience = TimeAmount.milliseconds(1)

    private let bootstrap: ClientBootstrap
    private let made: NIOLoopBoundBox<(any Channel)?>

    init(_ context: LoopContext) {
        let made = NIOLoopBoundBox<(any Channel)?>(nil, eventLoop: context.eventLoop)
        let receive = NIOLoopBound(context.receive, eventLoop: context.eventLoop)
        self.made = made
        self.bootstrap = ClientBootstrap(group: context.eventLoop)
            .channelInitializer { channel in
                do {
                    try channel.setLoopOptions(receive: receive.value.makeAllocator())
                } catch {
                    return channel.eventLoop.makeFailedFuture(error)
                }
                made.value = channel
                return channel.eventLoop.makeSucceededVoidFuture()
            }
    }

    enum State {
        case connecting
        case connected
        case failed(ConnectError.Reason)
        /// No socket can be had or bound: NIO's own way finds out why.
        case unavailable
    }

    /// Begins a connect; `descriptor` is its socket.
    static func begin(to target: SocketAddress, from source: SocketAddress?) -> (state: State, descriptor: CInt) {
        var error: CInt = 0
        let descriptor = target.withSockAddr { target, size in
            guard let source else { return clamor_begin_connect(target, nil, socklen_t(size), &error) }
            return source.withSockAddr { source, _ in clamor_begin_connect(target, source, socklen_t(size), &error) }
        }
        if descriptor >= 0 { return (Self.state(of: descriptor, to: target), descriptor) }
        return (error == 0 ? .unavailable : .failed(Self.reason(error)), descriptor)
    }

    static func state(of descriptor: CInt, to target: SocketAddress) -> State {
        switch target.withSockAddr({ clamor_ended_connect(descriptor, $0, socklen_t($1)) }) {
        case 0: .connected
        case EALREADY: .connecting
        case let error: .failed(Self.reason(error))
        }
    }

    private static func reason(_ error: CInt) -> ConnectError.Reason {
        ConnectError.Reason(IOError(errnoCode: error, reason: "connect"), isBinding: false)
    }

    /// The channel of a socket that is connected, active already; `nil` where the loop takes no more.
    func open(_ descriptor: CInt) -> (any Channel)? {
        _ = self.bootstrap.withConnectedSocket(descriptor)
        let channel = self.made.value
        self.made.value = nil
        return channel.flatMap { $0.isActive ? $0 : nil }
    }
}

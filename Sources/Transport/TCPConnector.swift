package import LoopContext
package import NIOCore
import NIOPosix

/// Makes the TCP connections of one event loop's clients.
package final class TCPConnector {
    package init(context: LoopContext, targets: [Target], sources: SourceAddresses = .any) {}

    /// Connects a client: resolves its target's name, tries each address in turn, adds the handler.
    ///
    /// - Parameters:
    ///   - client: its number; picks target and source address.
    ///   - deadline: for all of it; the same that CONNACK has to meet.
    ///   - handler: makes the channel's one handler, on the loop, for each socket that is tried.
    ///   - done: called once, on the loop, before the handler's `channelActive`; possibly before this returns.
    package func connect(
        client: Int,
        deadline: NIODeadline,
        handler: @escaping () -> some ChannelHandler,
        done: @escaping (Result<ConnectedChannel, ConnectError>) -> Void
    ) {}
}

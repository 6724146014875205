package import NIOCore

/// Makes the connections of one event loop's clients.
package protocol ClientConnector: AnyObject {
    /// Connects a client, and adds the handler.
    ///
    /// - Parameters:
    ///   - client: its number, from 0.
    ///   - deadline: when a connect that is not finished is given up.
    ///   - handler: makes the channel's one handler, on the loop, when the connection is up.
    ///   - done: called once, on the loop, with the handler in the pipeline; without layers before its `channelActive`.
    ///     A failure may come before this returns.
    func connect(
        client: Int,
        deadline: NIODeadline,
        handler: @escaping () -> some ChannelHandler,
        done: @escaping (Result<ConnectedChannel, ConnectError>) -> Void
    )
}

package import NIOCore

/// Makes the connections of one event loop's clients.
package protocol ClientConnector: AnyObject {
    /// Connects a client, and adds the observer's handler.
    ///
    /// - Parameters:
    ///   - client: its number, from 0; picks target and source address.
    ///   - place: the observer's own number for the client.
    ///   - deadline: when a connect that is not finished is given up; the same that the server's answer has to meet.
    ///   - observer: kept until it has heard of the end.
    func connect(client: Int, place: Int, deadline: NIODeadline, for observer: some ConnectObserver)
}

/// Whose connections a connector makes; all calls come on the event loop.
package protocol ConnectObserver: AnyObject {
    /// Makes the channel's one handler, when the connection is up.
    func makeHandler(_ place: Int) -> any ChannelHandler

    /// The connect is over, with the handler in the pipeline; without layers before its `channelActive`.
    ///
    /// Called once. A failure may come before `connect` returns.
    func connectEnded(_ place: Int, _ result: Result<ConnectedChannel, ConnectError>, deadline: NIODeadline)
}

extension ClientConnector {
    /// The same for whoever connects once in a while: two closures in the place of an observer.
    package func connect(
        client: Int,
        deadline: NIODeadline,
        handler: @escaping () -> any ChannelHandler,
        done: @escaping (Result<ConnectedChannel, ConnectError>) -> Void
    ) {
        self.connect(client: client, place: 0, deadline: deadline, for: ConnectClosures(handler: handler, done: done))
    }
}

private final class ConnectClosures: ConnectObserver {
    private let handler: () -> any ChannelHandler
    private let done: (Result<ConnectedChannel, ConnectError>) -> Void

    init(
        handler: @escaping () -> any ChannelHandler,
        done: @escaping (Result<ConnectedChannel, ConnectError>) -> Void
    ) {
        self.handler = handler
        self.done = done
    }

    func makeHandler(_ place: Int) -> any ChannelHandler { self.handler() }

    func connectEnded(_ place: Int, _ result: Result<ConnectedChannel, ConnectError>, deadline: NIODeadline) {
        self.done(result)
    }
}

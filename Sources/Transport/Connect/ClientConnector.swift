package import NIOCore

/// Opens connections for the clients of one event loop.
package protocol ClientConnector: AnyObject {
    /// Connects a client, and adds the observer's handler.
    ///
    /// - Parameters:
    ///   - client: the client's number, from 0; selects target and source address.
    ///   - place: the observer's own number for the client.
    ///   - deadline: the time at which an unfinished connect is cancelled; the server's answer has the same deadline.
    ///   - observer: kept alive until `connectEnded` has been called.
    func connect(client: Int, place: Int, deadline: NIODeadline, for observer: some ConnectObserver)
}

/// The owner of a connector's connections; all calls are made on the event loop.
package protocol ConnectObserver: AnyObject {
    /// Creates the channel's one handler when the connection is up.
    func makeHandler(_ place: Int) -> any ChannelHandler

    /// The connect is over, with the handler in the pipeline.
    ///
    /// Without layers this call comes before the handler's `channelActive`.
    ///
    /// Called once, possibly before `connect` returns.
    func connectEnded(_ place: Int, _ result: Result<ConnectedChannel, ConnectError>, deadline: NIODeadline)
}

extension ClientConnector {
    /// Connects with two closures instead of an observer, for callers that connect rarely.
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

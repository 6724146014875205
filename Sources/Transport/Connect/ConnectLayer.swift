package import NIOCore

/// A step between TCP and the client's handler: a PROXY header, TLS, a WebSocket.
///
/// It puts its handlers into the pipeline, does its handshake, and says when the next one may stand on top of it. One
/// object serves all clients of an event loop; what belongs to one connection lives in its handlers.
package protocol ConnectLayer: AnyObject {
    /// What a deadline that comes meanwhile was spent on.
    var phase: ConnectError.Phase { get }

    /// Begins on a channel that is up.
    ///
    /// - Parameters:
    ///   - channel: on its event loop, where everything here happens.
    ///   - client: the number of the client, from 0.
    ///   - target: where it is connected to.
    ///   - done: called once, on the loop, when the layer is ready or the channel no longer any use; it may come
    ///     before this returns.
    func begin(
        _ channel: any Channel,
        client: Int,
        target: Target,
        done: @escaping (Result<Void, ConnectError.Reason>) -> Void
    )
}

import NIOCore
import Transport

// A transport of the application's own.
extension ClientCore {
    /// Calls the closure that makes the channel; until it returns, the connect's own timer has the deadline.
    func open(_ target: Target, _ connect: @escaping MQTTTransport.Connect, _ opening: Opening) {
        let (seed, epoch) = (self.seed, self.epoch)
        let request = MQTTTransportRequest(
            host: target.host,
            port: UInt16(clamping: target.port),
            eventLoop: seed.eventLoop
        )
        self.transportTask = Task {
            let result: Result<any Channel, any Error>
            do {
                result = .success(try await connect(request))
            } catch {
                result = .failure(error)
            }
            seed.executeWithoutMaking { core in
                guard let core, core.epoch == epoch, core.transportTask != nil else {
                    // The attempt that wanted the channel is over.
                    if case .success(let channel) = result { channel.close(promise: nil) }
                    return
                }
                core.transportTask = nil
                core.isPreparing = false
                core.opened(result, target, opening)
            }
        }
        self.updateTimer()
    }

    private func opened(_ result: Result<any Channel, any Error>, _ target: Target, _ opening: Opening) {
        let channel: any Channel
        switch result {
        case .failure(let error): return self.failConnect(.noConnection(MQTTConnectFailure(error, target)))
        case .success(let made): channel = made
        }
        guard channel.eventLoop === self.seed.eventLoop else {
            channel.close(promise: nil)
            let words = "the transport's channel must be on the event loop of its request"
            return self.failConnect(.invalid(words))
        }
        let connection = self.makeConnection()
        do {
            guard channel.isActive else { throw ChannelError.ioOnClosedChannel }
            try connection.attach(to: channel)
        } catch {
            self.connection = nil
            channel.close(promise: nil)
            return self.failConnect(.noConnection(MQTTConnectFailure(ChannelError.ioOnClosedChannel, target)))
        }
        self.channel = channel
        // Handlers of the application may lie below: no byte goes past them.
        self.start(connection, opening, isBare: false)
        self.updateTimer()
    }

    /// The error of a connect whose time is over.
    var lateError: MQTTClientError {
        guard self.transportTask != nil else { return .timedOut(.connack) }
        return .noConnection(MQTTConnectFailure(kind: "timeout", words: "the transport did not connect in time"))
    }
}

extension MQTTConnectFailure {
    /// The error of an application's transport.
    fileprivate init(_ error: any Error, _ target: Target) {
        guard error is IOError else {
            self.init(kind: "transport", words: "no connection to \(target): \(error)")
            return
        }
        let known = ConnectError(ConnectError.Reason(error, isBinding: false), target: target)
        self.init(kind: known.kind, words: known.description)
    }
}

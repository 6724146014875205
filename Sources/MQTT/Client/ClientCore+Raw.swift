import LoopContext
import MQTTCodec
import NIOCore
import SASL

/// What a connection begins with.
enum Opening {
    case connect(Connect, MQTTAuthenticator?)
    /// Bytes of the user's own.
    case raw([UInt8])
}

extension ClientCore {
    /// The opening of a connection that is about to be made; whatever belonged to the last one ends here.
    func opening(_ login: MQTTCredentials.Fields) throws(MQTTClientError) -> Opening {
        if let bytes = self.configuration.rawConnect {
            self.session.pointee.connectVerbatim(now: self.context.now)
            return .raw(bytes)
        }
        let connect = self.packet(login)
        if self.configuration.validates, let problem = connect.problem() { throw .forbidden(problem) }
        do throws(SASLError) {
            return .connect(connect, try self.makeAuthenticator())
        } catch {
            throw .invalid("\(error)")
        }
    }

    func start(_ connection: MQTTConnection, _ opening: Opening, isBare: Bool) {
        switch opening {
        case .connect(let connect, let authenticator):
            connection.start(connect, deadline: self.connectDeadline, isBare: isBare, authenticator: authenticator)
        case .raw(let bytes):
            connection.start(verbatim: bytes, deadline: self.connectDeadline, isBare: isBare)
        }
        let waiting = self.rawWaiting
        self.rawWaiting = []
        for (bytes, waiter) in waiting { self.sendRaw(bytes, waiter) }
    }

    /// Sends bytes as they are; while the transport is being made they wait for it.
    func sendRaw(_ bytes: [UInt8], _ waiter: Waiter<MQTTPublishResult>) {
        guard !waiter.isDone else { return }
        if self.state == .connecting, self.channel == nil {
            self.rawWaiting.append((bytes, waiter))
            return
        }
        guard self.state == .connecting || self.state == .connected, let connection = self.connection else {
            waiter.complete(.failure(.notConnected))
            return
        }
        // First: a write that fails ends the connection, and with it the waits of all who are listed.
        self.writing.append(waiter)
        connection.sendRaw(bytes)
        if connection.flush() == 0 { self.written() }
    }

    /// There will be no transport for them.
    func failRaw(_ error: MQTTClientError) {
        let waiting = self.rawWaiting
        self.rawWaiting = []
        for (_, waiter) in waiting { waiter.complete(.failure(error)) }
    }
}

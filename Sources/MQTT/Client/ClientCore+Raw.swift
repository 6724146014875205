import LoopContext
import MQTTCodec
import NIOCore
import SASL

/// The first bytes of a connection.
enum Opening {
    case connect(Connect, MQTTAuthenticator?)
    /// The user's raw bytes.
    case raw([UInt8])
}

extension ClientCore {
    /// The opening of a new connection; all state of the last connection ends here.
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

    /// Sends raw bytes; while the transport connects they wait for it.
    func sendRaw(_ bytes: [UInt8], _ waiter: Waiter<MQTTPublishResult>) {
        guard !waiter.isDone else { return }
        if self.state == .connecting, self.channel == nil {
            self.rawWaiting.append((bytes, waiter))
            return
        }
        guard self.state == .connecting || self.state == .connected, let connection = self.connection else {
            return waiter.fail(.notConnected)
        }
        // Added before the write, because a failed write ends the connection and all listed calls.
        self.writing.append(waiter)
        connection.sendRaw(bytes)
        if connection.flush() == 0 { self.written() }
    }

    /// Ends the calls whose raw bytes wait for a transport that will not exist.
    func failRaw(_ error: MQTTClientError) {
        let waiting = self.rawWaiting
        self.rawWaiting = []
        for (_, waiter) in waiting { waiter.fail(error) }
    }
}

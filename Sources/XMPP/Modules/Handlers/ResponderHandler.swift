import NIOCore
package import XMPPCodec

/// Hands requests of one kind to tasks, and sends their answers.
package final class ResponderHandler: XMPPHandler {
    private struct Open {
        /// The attributes alone: all that an answer needs.
        let request: XMPPElement
        /// The connection that it came on.
        let connection: UInt64
        var task: Task<Void, Never>?
        /// An answer that waits for a resumption.
        var answer: XMPPAnswer?
    }

    /// Requests that were turned away.
    package private(set) var refused = 0
    /// Tasks that have not ended, those of earlier streams among them.
    package private(set) var running = 0
    private var open: [UInt64: Open] = [:]
    private var number: UInt64 = 0
    private var connection: UInt64 = 0
    private var isReady = false
    private let name: String
    private let namespace: String
    private let maximum: Int
    private let start: (XMPPElement, UInt64) -> Task<Void, Never>?

    /// - Parameters:
    ///   - name: the name of the element in the requests.
    ///   - namespace: its namespace.
    ///   - maximum: tasks at once.
    ///   - start: starts the task for a request; its end is reported to ``finished(_:_:in:)`` with the same number.
    package init(
        _ name: String,
        _ namespace: String,
        maximum: Int,
        start: @escaping (XMPPElement, UInt64) -> Task<Void, Never>?
    ) {
        self.name = name
        self.namespace = namespace
        self.maximum = maximum
        self.start = start
    }

    deinit { for entry in self.open.values { entry.task?.cancel() } }

    package func handle(_ stanza: XMPPElement, in context: XMPPModuleContext) -> Bool {
        guard stanza.isRequest, stanza.child(self.name, self.namespace) != nil else { return false }
        guard self.running < self.maximum else {
            self.refused += 1
            context.refuse(stanza, StanzaError(.resourceConstraint))
            return true
        }
        self.number += 1
        self.running += 1
        var request = stanza
        request.children = []
        let task = self.start(stanza, self.number)
        self.open[self.number] = Open(request: request, connection: self.connection, task: task)
        return true
    }

    /// The task of a request has ended.
    package func finished(_ number: UInt64, _ answer: XMPPAnswer, in context: XMPPModuleContext?) {
        self.running -= 1
        guard var entry = self.open.removeValue(forKey: number) else { return }
        guard self.isReady, let context else {
            entry.answer = answer
            entry.task = nil
            self.open[number] = entry
            return
        }
        self.send(answer, to: entry.request, in: context)
    }

    package func ready(_ session: XMPPSession, in context: XMPPModuleContext) {
        self.isReady = true
        for (number, entry) in self.open.sorted(by: { $0.key < $1.key }) {
            if !session.isResumed, entry.connection < self.connection {
                entry.task?.cancel()
                self.open[number] = nil
            } else if let answer = entry.answer {
                self.open[number] = nil
                self.send(answer, to: entry.request, in: context)
            }
        }
    }

    package func ended(_ end: XMPPClientEnd) {
        self.isReady = false
        self.connection += 1
    }

    private func send(_ answer: XMPPAnswer, to request: XMPPElement, in context: XMPPModuleContext) {
        switch answer {
        case .result(nil): context.answer(request)
        case .result(let payload?) where payload.canBeWritten: context.answer(request, with: payload)
        case .error(let error) where error.element().canBeWritten: context.refuse(request, error)
        // The sender waits for an answer, and gets one.
        case .result, .error: context.refuse(request, StanzaError(.internalServerError))
        }
    }
}

extension XMPPElement {
    /// Whether XML can represent it.
    fileprivate var canBeWritten: Bool {
        var buffer = ByteBuffer()
        return (try? self.write(into: &buffer, parent: XMPPNamespace.client)) != nil
    }
}

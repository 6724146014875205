package import MQTT
package import MQTTCodec
package import Measurement
import NIOCore
import SASL

// The packets that the clients of a load send, and their check.
extension MQTTLoad {
    func subscription(_ filter: String, _ qos: QoS, _ options: SubscriptionOptions? = nil) -> Subscription {
        let options = options ?? self.subscribeOptions
        return Subscription(
            filter: filter,
            qos: qos,
            noLocal: options.noLocal,
            retainAsPublished: options.retainAsPublished,
            retainHandling: options.retainHandling
        )
    }

    /// The user name and password in each of the client's CONNECTs.
    package func credentials(of values: PlaceholderValues, random: inout SplitMix64) -> MQTTCredentials.Fields {
        if let account = self.account {
            return account.fields(clientID: String(decoding: values.clientID, as: UTF8.self))
        }
        return MQTTCredentials.Fields(
            userName: self.username.map { _ in String(decoding: values.username, as: UTF8.self) },
            password: self.password?.rendered(values, random: &random)
        )
    }

    func mechanism(
        _ hash: SCRAMHash,
        _ credentials: MQTTCredentials.Fields,
        cache: SCRAMKeyCache
    ) throws(SASLError) -> SCRAMClient {
        let password = String(decoding: credentials.password ?? [], as: UTF8.self)
        return try SCRAMClient(hash, user: credentials.userName ?? "", password: password, cache: cache)
    }

    /// The client's will, the same on all its connections.
    package func will(of values: PlaceholderValues) -> Will? {
        guard let will = self.will else { return nil }
        var random = SplitMix64(seed: self.seed &+ UInt64(values.clientNumber))
        return Will(
            topic: String(decoding: will.topic.rendered(values, random: &random), as: UTF8.self),
            payload: will.message.rendered(values, random: &random),
            qos: will.qos,
            retain: will.retain,
            properties: will.properties
        )
    }

    /// The properties of a client's publishes, except the topic alias.
    private func properties(of values: PlaceholderValues, _ stream: Stream) -> Properties {
        var properties = stream.properties
        if let template = stream.responseTopic {
            var random = SplitMix64(seed: self.seed)
            properties.append(
                .responseTopic(String(decoding: template.rendered(values, random: &random), as: UTF8.self))
            )
        }
        return properties
    }

    /// A description of the first MQTT rule that the load would break.
    ///
    /// The first and the last client of each kind are checked.
    ///
    /// With `--validate off` the packets are sent unchecked, to test the server's reaction.
    package func problem() -> String? {
        let publishers = self.publishers > 0 ? [0, self.publishers - 1] : []
        let subscribers = self.subscribers > 0 ? [self.publishers, self.publishers + self.subscribers - 1] : []
        if self.topology == .request, let problem = self.answerProblem { return problem }
        if let problem = self.churnProblem { return problem }
        for number in Set(publishers + subscribers).sorted() {
            let values = self.values(of: number)
            let id = String(decoding: values.clientID, as: UTF8.self)
            if let problem = self.connect(values).problem() { return "client '\(id)': \(problem.words)" }
            do throws(MQTTCredentialsError) {
                try self.account?.check(clientID: id, keepAlive: self.publisherSession.keepAlive)
            } catch {
                return "\(error)"
            }
            if let problem = self.churnProblem(of: number) { return problem }
            if self.isPublisher(number), let problem = self.publishProblem(of: number, values, id) { return problem }
            if self.subscribingClients.contains(number), let problem = self.subscribeProblem(of: number, id) {
                return problem
            }
        }
        return nil
    }

    private func publishProblem(of number: Int, _ values: PlaceholderValues, _ id: String) -> String? {
        for (place, stream) in self.streams.enumerated() where !stream.qualities.isEmpty && stream.p2p == nil {
            var random = SplitMix64(seed: self.seed)
            let topic = String(decoding: stream.topic.rendered(values, random: &random), as: UTF8.self)
            let publish = Publish(
                topic: topic,
                payload: ByteBuffer(),
                qos: self.qos(ofPublisher: number, stream: place),
                properties: self.properties(of: values, stream)
            )
            if let problem = publish.problem(as: self.version, packetID: false) {
                return "topic '\(topic)' of client '\(id)': \(problem.words)"
            }
        }
        return nil
    }

    private func subscribeProblem(of number: Int, _ id: String) -> String? {
        let subscriptions = self.subscriptions(of: number)
        guard let first = subscriptions.first else { return nil }
        return Subscribe(1, subscriptions, properties: self.subscribeOptions.properties).problem(as: self.version)
            .map { "filter '\(first.filter)' of client '\(id)': \($0.words)" }
    }

    /// Answers that would be taken for requests, because a responder subscribes to their topic.
    private var answerProblem: String? {
        let answers = self.subscriptions(of: 0).first?.filter ?? ""
        let requests = self.topic.filterOfAllClients
        guard let filter = try? TopicFilter(validating: requests), filter.matches(topic: answers) else { return nil }
        return
            "answers go to '\(answers)', which is among the topics of requests, '\(requests)'; give them another topic"
    }

    private func connect(_ values: PlaceholderValues) -> Connect {
        var random = SplitMix64(seed: self.seed)
        let credentials = self.credentials(of: values, random: &random)
        return Connect(
            version: self.version,
            clientID: String(decoding: values.clientID, as: UTF8.self),
            cleanStart: self.publisherSession.cleanStart,
            keepAlive: self.publisherSession.keepAlive,
            username: credentials.userName,
            password: credentials.password,
            will: self.will(of: values)
        )
    }
}

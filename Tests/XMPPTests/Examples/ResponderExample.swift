import XMPP

/// Answers a question of another client; messages of others do not get through.
func answerQuestions(_ first: XMPPClientConfiguration, _ second: XMPPClientConfiguration) async throws -> String? {
    let weather = "urn:example:weather"
    let responder = XMPPResponder("query", weather) { _ in
        .result(XMPPElement("query", namespace: weather, text: "rain"))
    }
    let silence = XMPPFilter(received: { $0.name == "message" ? nil : $0 })
    let bot = XMPPClient(first, modules: [silence, responder])
    let jid = try await bot.connect()

    let client = XMPPClient(second)
    try await client.connect()
    var question = XMPPElement("iq", namespace: XMPPNamespace.client, attributes: ["type": "get"])
    question["to"] = jid.description
    question.add(XMPPElement("query", namespace: weather))
    let answer = try await client.request(question).child("query", weather)?.text

    for client in [bot, client] { await client.disconnect() }
    return answer
}

import XMPP

/// Changes the password of an account, logs in with it, and removes the account.
func renewAndRemove(_ configuration: XMPPClientConfiguration, password: String) async throws {
    let registration = XMPPAccountRegistration()
    let client = XMPPClient(configuration, modules: [registration])
    try await client.connect()
    try await registration.changePassword(password)
    await client.disconnect()

    var renewed = configuration
    renewed.password = password
    let remover = XMPPAccountRegistration()
    let last = XMPPClient(renewed, modules: [remover])
    try await last.connect()
    try await remover.remove()
    await last.disconnect()
}

import Testing
import Transport

@Suite("SPEC A13: TLS defaults")
struct TLSDefaultsTests {
    @Test("chain and name are checked, invalid certificates are not taken, and nothing is pinned")
    func defaults() {
        let settings = TLSSettings()
        #expect(settings.verifies)
        #expect(settings.minimumVersion == .v1_2)
        #expect(settings.pinning.mode == .none)
        #expect(settings.pinning.validatesCertificateChain)
        #expect(settings.pinning.validatesDomainName)
        #expect(!settings.pinning.allowsInvalidCertificates)
        #expect(settings.pinning.certificates.isEmpty)
        #expect(settings.pinning.keyDigests.isEmpty)
    }
}

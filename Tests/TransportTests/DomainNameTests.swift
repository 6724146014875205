import Testing
import Transport

@Suite("Names of domains in ASCII")
struct DomainNameTests {
    @Test(
        "[RFC 3492 §7.1] labels that are not ASCII become A-labels",
        arguments: [
            ("b\u{FC}cher.example", "xn--bcher-kva.example"), ("M\u{DC}NCHEN.de", "xn--mnchen-3ya.de"),
            ("日本語。jp", "xn--wgv71a119e.jp"), ("пример.испытание", "xn--e1afmkfd.xn--80akhbyknj4f"),
            ("παράδειγμα.test", "xn--hxajbheg2az3al.test"), ("他们为什么不说中文", "xn--ihqwcrb4cv8a8dqg056pqjye"),
            ("3年b組金八先生", "xn--3b-ww4c5e180e575a65lsy2b"),
            ("pročprostěnemluvíčesky", "xn--proprostnemluvesky-uyb24dma41a"), ("LOCALHOST.", "localhost"),
            ("_xmpp-client._tcp.a-b.test", "_xmpp-client._tcp.a-b.test"), ("127.0.0.1", "127.0.0.1"),
        ]
    )
    func ascii(_ name: String, _ ascii: String) {
        #expect(DomainName.ascii(name) == ascii)
    }

    @Test(
        "what is no host name is nothing",
        arguments: [
            "", ".", "a..b", ".a", "a b", "a/b", "a@b", "[::1]", "a\u{0}", "a\nb", String(repeating: "a", count: 64),
            String(repeating: "\u{FC}", count: 64), String(repeating: "a.", count: 127) + "a",
        ]
    )
    func refuses(_ name: String) {
        #expect(DomainName.ascii(name) == nil)
    }
}

import Testing
import clamor

@Suite("Secrets")
struct RedactionTests {
    @Test(
        "are replaced in the command of run.json, whatever their form",
        arguments: [
            ("pub -P s3cret -c 5", "pub -P *** -c 5"), ("pub -Ps3cret -c 5", "pub -P*** -c 5"),
            ("pub -P=s3cret", "pub -P***"), ("pub --password s3cret", "pub --password ***"),
            ("pub --password=s3cret", "pub --password=***"), ("pub -p 5 -c 7", "pub -p 5 -c 7"),
            ("pub --url mqtt://u:s3cret@h:1/", "pub --url mqtt://u:***@h:1/"),
            ("pub --url=mqtt://u:s3:c@r@h", "pub --url=mqtt://u:***@h"),
            ("pub --url mqtt://u@h", "pub --url mqtt://u@h"),
            ("pub --url mqtt://h:1883", "pub --url mqtt://h:1883"), ("pub -P", "pub -P"),
            ("pub -P -P -c 5", "pub -P *** -c 5"), ("pub --password-file f", "pub --password-file f"),
        ]
    )
    func command(_ line: String, _ expected: String) {
        #expect(Redaction.command(line.split(separator: " ").map(String.init)).joined(separator: " ") == expected)
    }

    @Test("are replaced in each URL of a text")
    func text() {
        #expect(
            Redaction.hideURLSecrets(in: "from 'mqtt://a:b@c' to ws://d:e@f/g and x://y")
                == "from 'mqtt://a:***@c' to ws://d:***@f/g and x://y"
        )
    }

    @Test("are not in the options' command")
    func options() throws {
        let options = try clamorTests.options("pub -u a -P s3cret --prefix p")
        #expect(options.password == "s3cret")
        #expect(options.redactedCommand == ["clamor", "pub", "-u", "a", "-P", "***", "--prefix", "p"])
    }
}

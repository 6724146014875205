import RunControl
import Scenario
import Testing
import clamor

@Suite("Secrets")
struct RedactionTests {
    @Test(
        "are replaced in the command of run.json, whatever their form",
        arguments: [
            ("pub -P s3cret -c 5", "pub -P *** -c 5"), ("pub -Ps3cret -c 5", "pub -P*** -c 5"),
            ("capacity --slo x -- pub -P s3cret --psk a:00", "capacity --slo x -- pub -P *** --psk ***"),
            ("pub -h u:s3cret@h", "pub -h u:***@h"), ("pub -P=s3cret", "pub -P***"),
            ("pub --password s3cret", "pub --password ***"),
            ("pub --password=s3cret", "pub --password=***"), ("pub -p 5 -c 7", "pub -p 5 -c 7"),
            ("pub --url mqtt://u:s3cret@h:1/", "pub --url mqtt://u:***@h:1/"),
            ("pub --url=mqtt://u:s3:c@r@h", "pub --url=mqtt://u:***@h"),
            ("pub --url mqtt://u@h", "pub --url mqtt://u@h"),
            ("pub --url mqtt://h:1883", "pub --url mqtt://h:1883"), ("pub -P", "pub -P"),
            ("pub -P -P -c 5", "pub -P *** -c 5"), ("pub --password-file f", "pub --password-file f"),
            ("pub --psk a:00 -c 5", "pub --psk *** -c 5"), ("pub --psk=a:00", "pub --psk=***"),
            ("pub --header A:s3cret -c 5", "pub --header A: *** -c 5"), ("pub --header=s3cret", "pub --header=***"),
            ("pub --ws-headers A:b", "pub --ws-headers A: ***"), ("conn --raw 1000", "conn --raw ***"),
            ("conn --raw @f", "conn --raw @f"), ("pub --path /a?s=b -c 5", "pub --path /a?*** -c 5"),
            ("pub --path=/a", "pub --path=/a"),
            ("run f --set RATE=5", "run f --set RATE=5"),
            ("run f --set=DB_PASSWORD=s", "run f --set=DB_PASSWORD=***"),
            ("run f --set CLAMOR_QUERY=s", "run f --set CLAMOR_QUERY=***"),
            ("pub --url wss://h/a?sig=b", "pub --url wss://h/a?***"),
            ("pub --url ws://u:p@h/a?sig=b", "pub --url ws://u:***@h/a?***"),
        ]
    )
    func command(_ line: String, _ expected: String) {
        #expect(Redaction.command(line.split(separator: " ").map(String.init)).joined(separator: " ") == expected)
    }

    @Test(
        "a child's arguments have no value of --set, joined or not",
        arguments: [
            ("run f --set RATE=5", "run f --set RATE=***"), ("run f --set=PW2=s3cret", "run f --set=PW2=***"),
            ("run f --against=A=b=c", "run f --against=A=***"), ("run f.yaml --seed 4", "run f.yaml --seed 4"),
        ]
    )
    func settings(_ line: String, _ expected: String) {
        let words = line.split(separator: " ").map { Redaction.hideSetting(String($0)) }
        #expect(words.joined(separator: " ") == expected)
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
